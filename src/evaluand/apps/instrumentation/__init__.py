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
    from evaluand.apps.instrumentation.marking import (
        carry_context as carry_context,
        instrument as instrument,
        is_instrumented as is_instrumented,
        make_instrumented as make_instrumented,
    )
    from evaluand.apps.instrumentation.steps import (
        CompletedCall as CompletedCall,
        Recorder as Recorder,
        Step as Step,
        begin_step as begin_step,
    )

__getattr__, __dir__ = lazy_names(__name__)
