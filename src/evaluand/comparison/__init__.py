"""Step 4: whether one system is better than another, by how much, with what confidence, and on which examples.

`compare` pairs the rows of two or more evaluations (`pairing`) and works on their differences: the mean with its
interval, tests, counts of rows won and lost, and the smallest difference that could have been detected (`difference`).
Several runs and metrics form a family of tests, whose p values are adjusted (`significance`). A ranking says which
systems cannot be distinguished (`significance`). `gates` checks rules such as `accuracy not worse than base by 0.02`.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.comparison.checking import GateResult as GateResult
    from evaluand.comparison.comparing import Comparison as Comparison, compare as compare
    from evaluand.comparison.gates import check_fit as check_fit, check_gates as check_gates
    from evaluand.comparison.measures import find_evaluations as find_evaluations, find_measures as find_measures
    from evaluand.comparison.rule import Gate as Gate

__getattr__, __dir__ = lazy_names(__name__)
