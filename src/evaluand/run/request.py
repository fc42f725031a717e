"""What is asked of a step besides what it works on: the keywords of each door, stated and checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypedDict

from evaluand.core.errors import SpecError, described
from evaluand.core.parameters import Text, Within
from evaluand.run.parameters import check_parameters
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
        check_parameters(self)
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

    name: Text | None = None
    resume: Text | None = None
    origin: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.origin, Mapping | None):
            raise SpecError(f"origin: is {described(self.origin)}; give a mapping, or leave it out")
        if self.name is not None:
            check_name(self.name)


@dataclass(frozen=True, kw_only=True)
class Request(StepRequest):
    """What is asked of a step over examples.

    Attributes:
        limit: how many of the examples, from the first on.
    """

    limit: Annotated[int, Within(1)] | None = None


@dataclass(frozen=True, kw_only=True)
class PathRequest(Repetition):
    """What is asked of a whole path.

    Attributes:
        limit: how many of the examples, from the first on.
        calls: whether tasks may be called; if not, their stored runs are graded.
    """

    limit: Annotated[int, Within(1)] | None = None
    calls: bool = True


@dataclass(frozen=True, kw_only=True)
class ExperimentRequest(PathRequest):
    """What is asked of an experiment.

    Attributes:
        only: the one task to run.
        resume: the kind and the id of its run or evaluation that is open, to continue it.
    """

    only: Text | None = None
    resume: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        is_pair = isinstance(self.resume, tuple) and [*map(type, self.resume)] == [str, str]
        if self.resume is not None and not is_pair:
            raise SpecError(f"resume: is {described(self.resume)}; give a kind and an id, or leave it out")


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
