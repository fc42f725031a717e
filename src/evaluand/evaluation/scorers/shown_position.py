"""Where the right option of a multiple-choice question was shown, and where the chosen one was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, ClassVar

from evaluand.core.errors import DataError, described
from evaluand.evaluation.scorer import NO_ANSWER, NOTHING_EXPECTED, Score, Scorer


@dataclass(frozen=True, kw_only=True)
class ShownPosition(Scorer):
    """Columns `truth` and `prediction`: the letters at which the right and the chosen option were shown.

    The output is that of a task of the kind `multiple_choice`; 1 where both letters are the same. The metrics of
    classes then show what position does: `recall` with `label: A` is the accuracy on questions whose right option was
    shown as A, and `confusion_matrix` how often each position was chosen. Where options were shuffled, a system that
    attends to them alone has the same recall everywhere, up to chance. Abstains where nothing was expected or chosen.

    Example:
        >>> output = {"prediction": "A", "position": "B", "shown": ["C", "A", "B"]}
        >>> ShownPosition().score(output, "C").columns
        {'truth': 'A', 'prediction': 'B'}
    """

    kind = "shown_position"
    version = 1
    cheap = True
    ranges: ClassVar = {"value": (0.0, 1.0)}
    columns: ClassVar[Mapping[str, str]] = {"truth": "string", "prediction": "string"}

    def score(self, output: Any, expected: Any) -> Score:
        """The letters of one row; a DataError if the output is no choice, or the expected option was not shown."""
        if expected is None:
            return NOTHING_EXPECTED
        shown = _shown(output)
        right = next((place for place, option in enumerate(shown) if option == expected), None)
        if right is None:
            remedy = "set the task's answer to how the dataset states the right option"
            raise DataError(f"the right option, {described(expected)}, is none of those that were shown; {remedy}")
        truth, chosen = ascii_uppercase[right], output.get("position")
        if chosen is None:
            return NO_ANSWER._replace(columns={"truth": truth})
        return Score(float(truth == chosen), columns={"truth": truth, "prediction": chosen})


def _shown(output: Any) -> Sequence[Any]:
    shown = output.get("shown") if isinstance(output, Mapping) else None
    if not isinstance(shown, list | tuple):
        raise DataError(f"the output is {described(output)}, not a choice with the options as they were shown")
    return shown
