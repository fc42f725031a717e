"""What is asked of a step besides what it works on: one value from a command to runner, evaluator and matcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from evaluand.store.store import check_name


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a step, or of a whole experiment.

    Attributes:
        limit: only the first examples.
        fresh: make all calls and grades again, as a further attempt.
        retry_failed: make the calls and grades that failed again, as a further attempt.
        calls: whether tasks may be called; if not, their stored runs are graded.
        only: the one task to run.
        name: a name for what is made, for people and for finding it again.
        resume: the id of an open artifact that must be continued.
        origin: where the request came from, for provenance.
    """

    limit: int | None = None
    fresh: bool = False
    retry_failed: bool = False
    calls: bool = True
    only: str | None = None
    name: str | None = None
    resume: str | None = None
    origin: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name)


DEFAULT: Final = Request()


class Repetition(TypedDict, total=False):
    """The keywords of what is done again; see `Request`."""

    fresh: bool
    retry_failed: bool


class StepOptions(Repetition, total=False):
    """The keywords of every step; see `Request`."""

    name: str | None
    resume: str | None
    origin: Mapping[str, Any] | None


class LimitedOptions(StepOptions, total=False):
    """The keywords of a step over examples; see `Request`."""

    limit: int | None


class PathOptions(Repetition, total=False):
    """The keywords of a whole path; see `Request`."""

    limit: int | None
    calls: bool


class ExperimentOptions(PathOptions, total=False):
    """The keywords of an experiment; see `Request`."""

    only: str | None
