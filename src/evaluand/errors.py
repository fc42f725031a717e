"""The errors and warnings of evaluand; `except evaluand.errors.EvaluandError` catches all errors.

Example:
    >>> from evaluand import errors
    >>> issubclass(errors.SpecError, errors.EvaluandError)
    True
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.core.errors import (
        DataError as DataError,
        EngineError as EngineError,
        EvaluandError as EvaluandError,
        EvaluandWarning as EvaluandWarning,
        Fault as Fault,
        NotFound as NotFound,
        NotStored as NotStored,
        ParameterError as ParameterError,
        Skipped as Skipped,
        SpecError as SpecError,
        TaskError as TaskError,
        TaskTimeout as TaskTimeout,
        TransientError as TransientError,
    )

__getattr__, __dir__ = lazy_names(__name__)
