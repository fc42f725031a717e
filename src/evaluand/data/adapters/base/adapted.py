"""The rows that adapters produce from a stream, and counts of what happened to each row."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Literal

from evaluand.data.adapters.base.apply import Row, Step, row_name
from evaluand.data.adapters.base.faults import AdapterError

OnError = Literal["abort", "skip", "default"]

_MAX_REASONS: Final = 100


@dataclass(slots=True)
class Counts:
    """What happened to the rows that entered a pipeline.

    Attributes:
        read: rows that entered.
        made: rows that came out.
        skipped: rows left out because they could not be transformed.
        defaulted: rows replaced by the default row.
        reasons: error message without its row → how often it occurred; the first hundred distinct messages.
    """

    read: int = 0
    made: int = 0
    skipped: int = 0
    defaulted: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class Adapted(Iterator[Row]):
    """The rows that a pipeline produces from a stream, with counts so far.

    Args:
        apply: the new rows of one row.
        counts: counts to continue.
        on_error: what happens to a row that cannot be transformed, as in `Pipeline`.
        default: the replacement row, with `on_error="default"`.
    """

    def __init__(
        self,
        apply: Step,
        stream: Iterable[Row],
        counts: Counts,
        on_error: OnError = "abort",
        default: Mapping[str, Any] | None = None,
    ) -> None:
        self.counts = counts
        self._on_error, self._default = on_error, default
        self._rows = chain.from_iterable(self._adapt(apply, stream))

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def __next__(self) -> Row:
        return next(self._rows)

    def _adapt(self, apply: Step, stream: Iterable[Row]) -> Iterator[Sequence[Row]]:
        counts = self.counts
        for row in stream:
            counts.read += 1
            try:
                rows = apply(row)
            except AdapterError as error:
                if self._on_error == "abort":
                    error.add_place(row_name(row, counts.read - 1))
                    raise
                rows = self._replace(str(error))
            counts.made += len(rows)
            yield rows

    def _replace(self, reason: str) -> Sequence[Row]:
        """The rows that replace a failed one."""
        reasons = self.counts.reasons
        if reason in reasons or len(reasons) < _MAX_REASONS:
            reasons[reason] += 1
        if self._default is None:
            self.counts.skipped += 1
            return ()
        self.counts.defaulted += 1
        return (dict(copy.deepcopy(self._default)),)
