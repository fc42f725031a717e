"""The statuses of responses and scores; importing them needs no Arrow."""

from typing import Final

COMPLETED: Final = "completed"
SCORED: Final = "scored"
FAILED: Final = "failed"
ABSTAINED: Final = "abstained"
SKIPPED: Final = "skipped"

RESPONSE_STATUSES: Final = (COMPLETED, FAILED, SKIPPED)
SCORE_STATUSES: Final = (SCORED, FAILED, ABSTAINED, SKIPPED)
