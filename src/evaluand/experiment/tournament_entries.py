"""Tournaments from entries of `matches` in an experiment file, and from the options of a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from evaluand.core import registry
from evaluand.core.errors import DataError, SpecError, alternatives
from evaluand.core.files.yaml import Document, Place
from evaluand.evaluation.scorer import Scorer
from evaluand.experiment import build
from evaluand.experiment.long_forms import expand_matches, place_of_matches
from evaluand.experiment.parsing import ValidParts
from evaluand.experiment.spec import (
    GRADED_BY,
    JudgeEntry,
    KindSpec,
    MatchesSpec,
    compares_scores,
    graded_by,
)
from evaluand.predictions.tournament import Tournament


def build_tournaments(
    spec: ValidParts, document: Document, scorers: Mapping[str, Scorer], folder: Path
) -> dict[Place, Tournament]:
    """The tournaments of a file by their place in it; adds faults to the document.

    Args:
        scorers: those of the experiment, to which a judge may refer by name.
    """
    found: dict[Place, Tournament] = {}
    for number, entry in spec.matches.items():
        place = place_of_matches(document, number)
        if _refers_to_invalid(entry.judge, spec, scorers):
            continue
        tournament = _build(entry, document, place, scorers, folder)
        if tournament is not None:
            found[place] = tournament
    for number, valid in spec.partial_matches.items():
        if not _refers_to_invalid(valid.get("judge"), spec, scorers):
            _build_parts(valid, document, place_of_matches(document, number), scorers, folder)
    return found


def read_tournament(entry: Mapping[str, Any], folder: Path) -> Tournament:
    """The tournament of one entry from the options of a command; a judge that begins with `{` is YAML.

    Args:
        folder: the folder to which paths are relative.

    Raises:
        SpecError: lists every fault.
    """
    written = {name: read_yaml(name, value) for name, value in entry.items()}
    document = options_document(written)
    try:
        spec = MatchesSpec.model_validate(expand_matches(written))
    except ValidationError as error:
        document.add_all(error)
        spec = None
    tournament = None if spec is None else _build(spec, document, (), {}, folder)
    with without_place():
        document.check()
    assert tournament is not None  # else there are faults
    return tournament


def options_document(value: Mapping[str, Any]) -> Document:
    """What the options of a command say, as a document."""
    return Document(Path(_NOWHERE), orjson.dumps(value))


@contextmanager
def without_place() -> Iterator[None]:
    """A block whose faults do not name a line of such a document, which nobody sees."""
    try:
        yield
    except (SpecError, DataError) as error:
        lines = str(error).split("\n")
        if not any(line.startswith(_NOWHERE) for line in lines):
            raise
        raise SpecError("\n".join(line.removeprefix(f"{_NOWHERE}:1: ") for line in lines)) from None


_NOWHERE = "options"


def _build(
    entry: MatchesSpec, document: Document, place: Place, scorers: Mapping[str, Scorer], folder: Path
) -> Tournament | None:
    parts = _build_parts({name: getattr(entry, name) for name in _PARTS}, document, place, scorers, folder)
    with document.at(*place):
        if len(parts) == len(_PARTS):
            others = {name: getattr(entry, name) for name in ("name", "tasks", "runs", "orders", "seed")}
            return Tournament(**parts, **others, confidence=entry.rating.confidence)
    return None


_PARTS = ("judge", "schedule", "rating")


def _build_parts(
    valid: Mapping[str, Any], document: Document, place: Place, scorers: Mapping[str, Scorer], folder: Path
) -> dict[str, Any]:
    """The valid ones of judge, schedule and rating of an entry; adds the faults of the others to the document."""
    parts: dict[str, Any] = {}
    if "judge" in valid:
        at_judge = _place_of_kind(document, place, "judge")
        graded: Scorer | None = None
        with document.at(*at_judge, *([GRADED_BY] if at_judge[-1] != "judge" else ())):
            graded = _graded_scorer(valid["judge"], scorers, folder)
        with document.at(*at_judge):
            if graded is not None or not compares_scores(valid["judge"]):  # else its faults are in the document
                parts["judge"] = build.judge(valid["judge"], graded, folder)
    if "schedule" in valid:
        with document.at(*_place_of_kind(document, place, "schedule")):
            parts["schedule"] = build.schedule(valid["schedule"])
    if "rating" in valid:
        with document.at(*_place_of_kind(document, place, "rating")):
            parts["rating"] = build.rating(valid["rating"])
    return parts


def _place_of_kind(document: Document, place: Place, key: str) -> Place:
    """Where the parameters of a judge or schedule are: `{by_score: {scorer: …}}` has them one level further in."""
    value = document.value
    for step in place:
        value = value[step]
    entry = value.get(key) if isinstance(value, Mapping) else None
    inner = [*entry.items()] if isinstance(entry, Mapping) else []
    is_short = len(inner) == 1 and isinstance(inner[0][1], Mapping)
    return (*place, key, inner[0][0]) if is_short else (*place, key)


def _graded_scorer(judge: JudgeEntry, scorers: Mapping[str, Scorer], folder: Path) -> Scorer | None:
    """The scorer whose scores a judge compares: one of the experiment by its name, or another."""
    entry = graded_by(judge)
    if entry is None:
        return None
    if isinstance(entry, KindSpec) and not entry.parameters:
        if entry.kind in scorers:
            return scorers[entry.kind]
        if entry.kind not in (kinds := registry.names("scorers")):
            raise SpecError(f"no scorer is called {entry.kind!r}{alternatives(entry.kind, [*scorers, *kinds])}")
    return build.scorer(entry, folder)


def _refers_to_invalid(judge: JudgeEntry | None, spec: ValidParts, scorers: Mapping[str, Scorer]) -> bool:
    """Whether a judge compares the scores of a scorer of the experiment whose faults are already in the document."""
    try:
        graded = None if judge is None else graded_by(judge)
    except ValidationError:
        return False  # reported where the judge is built
    return isinstance(graded, KindSpec) and graded.kind in {*spec.scorer_names} - {*scorers}


def read_yaml(name: str, value: Any) -> Any:
    """The value of an option; YAML where it begins with `{`.

    Args:
        name: of the option, for messages.
    """
    if isinstance(value, Mapping):
        return {key: read_yaml(name, each) for key, each in value.items()}
    is_yaml = isinstance(value, str) and value.lstrip().startswith("{")
    return Document(Path(name), value.encode()).value if is_yaml else value
