"""What is asked of a step besides what it works on: the keywords of each door, stated and checked once."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Final, TypedDict

from evaluand.core.errors import SpecError
from evaluand.store.store import check_name


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """What is done again though it is stored.

    Attributes:
        fresh: make all calls and grades again, as a further attempt.
        retry_failed: make the calls and grades that failed again, as a further attempt.
        keep_answers: take over answers and grades from before a change of code, which every number of them shows.
        repeat_lost: make calls and grades again that cost, where what was stored of them is damaged or missing.

    Raises:
        SpecError: a field has a wrong value.
    """

    fresh: bool = False
    retry_failed: bool = False
    keep_answers: bool = False
    repeat_lost: bool = False

    @property
    def repetition(self) -> dict[str, Any]:
        """What is done again, as keywords of a step."""
        return {part.name: getattr(self, part.name) for part in fields(Repetition)}

    def __post_init__(self) -> None:
        for part in fields(self):
            value, (kind, wanted) = getattr(self, part.name), _VALUES[str(part.type)]
            is_other = not isinstance(value, kind) or (kind is Integral and (isinstance(value, bool) or value < 1))
            if value is not part.default and is_other:
                raise SpecError(f"{part.name} must be {wanted}, not {reprlib.repr(value)}")
        if self.fresh and self.keep_answers:
            raise SpecError("fresh repeats the answers that keep_answers takes over; give one of them")


@dataclass(frozen=True, kw_only=True)
class StepRequest(Repetition):
    """What is asked of a step.

    Attributes:
        name: a name for what is made, for people and for finding it again.
        resume: the id of an open artifact that must be continued.
        origin: where the request came from, for provenance.
    """

    name: str | None = None
    resume: str | None = None
    origin: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name is not None:
            check_name(self.name)


@dataclass(frozen=True, kw_only=True)
class LimitedRepetition(Repetition):
    """What is done again, of the first examples only.

    Attributes:
        limit: how many.
    """

    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class Request(LimitedRepetition, StepRequest):
    """What is asked of a step over examples."""


@dataclass(frozen=True, kw_only=True)
class PathRequest(LimitedRepetition):
    """What is asked of a whole path.

    Attributes:
        calls: whether tasks may be called; if not, their stored runs are graded.
    """

    calls: bool = True


@dataclass(frozen=True, kw_only=True)
class ExperimentRequest(PathRequest):
    """What is asked of an experiment.

    Attributes:
        only: the one task to run.
        resume: the kind and the id of its run or evaluation that is open, to continue it.
    """

    only: str | None = None
    resume: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resume is not None and [type(part) for part in self.resume] != [str, str]:
            raise SpecError(f"resume must be a kind and an id, not {reprlib.repr(self.resume)}")


_VALUES: Final[Mapping[str, tuple[Any, str]]] = {
    "bool": (bool, "True or False"),
    "int | None": (Integral, "an integer of at least 1"),
    "str | None": (str, "a text"),
    "Mapping[str, Any] | None": (Mapping, "a mapping"),
    "tuple[str, str] | None": (tuple, "a kind and an id"),
}
"""The type of a field, as it is written → the type of a value besides the default, and what it must be in words."""


# The same for type checkers, which cannot read keywords from a record


class RepetitionOptions(TypedDict, total=False):
    """The keywords of `Repetition`."""

    fresh: bool
    retry_failed: bool
    keep_answers: bool
    repeat_lost: bool


class StepOptions(RepetitionOptions, total=False):
    """The keywords of `StepRequest`."""

    name: str | None
    resume: str | None
    origin: Mapping[str, Any] | None


class RequestOptions(StepOptions, total=False):
    """The keywords of `Request`."""

    limit: int | None


class PathOptions(RepetitionOptions, total=False):
    """The keywords of `PathRequest`."""

    limit: int | None
    calls: bool


class ExperimentOptions(PathOptions, total=False):
    """The keywords of `ExperimentRequest`."""

    only: str | None
    resume: tuple[str, str] | None
