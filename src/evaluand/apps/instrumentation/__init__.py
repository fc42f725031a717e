"""Instrumentation: methods and functions whose calls are traced whenever they are recorded.

instrumentation/marking.py    `@instrument`, and what makes a function an instrumented one
instrumentation/calling.py    the functions that replace the instrumented ones
instrumentation/steps.py      calls in progress, and the recordings that they belong to
instrumentation/spans.py      the spans of calls, and how their values are stored
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.apps.instrumentation.marking import carry_context as carry_context
    from evaluand.apps.instrumentation.marking import instrument as instrument
    from evaluand.apps.instrumentation.marking import is_instrumented as is_instrumented
    from evaluand.apps.instrumentation.marking import make_instrumented as make_instrumented
    from evaluand.apps.instrumentation.steps import CompletedCall as CompletedCall
    from evaluand.apps.instrumentation.steps import Recorder as Recorder
    from evaluand.apps.instrumentation.steps import Step as Step
    from evaluand.apps.instrumentation.steps import begin_step as begin_step

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "marking": ("carry_context", "instrument", "is_instrumented", "make_instrumented"),
        "steps": ("CompletedCall", "Recorder", "Step", "begin_step"),
    },
)
