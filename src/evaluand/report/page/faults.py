"""Faults as answers that a browser can show."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from starlette.responses import PlainTextResponse, Response

from evaluand.core.errors import DataError, EngineError, EvaluandError, NotFound, describe_error
from evaluand.report.text import safe

_SHOWN: Final = 200  # characters of a path in a log
_logger: Final = logging.getLogger("evaluand.report.page")


def answer_faults(path: str, answer: Callable[[], Response]) -> Response:
    """An answer; if it raises, one that says why."""
    try:
        return answer()
    except NotFound as error:
        return PlainTextResponse(str(error), 404)
    except (DataError, EngineError) as error:  # what is stored is damaged, or changed while it was read
        return PlainTextResponse(str(error), 409)
    except EvaluandError as error:
        return PlainTextResponse(str(error), 400)
    except Exception as error:  # a bug or a fault of the machine: where it happened is logged for the operator
        _logger.error("%s: %s", safe(path, _SHOWN), safe(describe_error(error)))
        return PlainTextResponse("this could not be read; the terminal of `evaluand view` says why", 500)
