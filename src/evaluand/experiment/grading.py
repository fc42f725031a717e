"""What grades stored runs, read as an experiment over them: a file with scorers, or scorers and judges by name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from evaluand.core.errors import SpecError
from evaluand.core.files.yaml import ComposedDocument, Document, Place
from evaluand.experiment.experiment import Experiment
from evaluand.experiment.long_forms import long_form
from evaluand.experiment.near_keys import meant_key
from evaluand.experiment.parsing import parse_document
from evaluand.experiment.spec import ExperimentSpec
from evaluand.experiment.tournament_entries import options_document, read_yaml, without_place
from evaluand.predictions.regrading import GradedRun, Regrading
from evaluand.predictions.steps import Steps

_NO_VALUE: Final = "mean reads 'value', which the table lacks"
_OF_TASKS: Final = ("name", "dataset", "tasks", "tradeoffs", "matches", "gates", "allow_unmeasured_judges")
"""The keys of an experiment file that say nothing about grading."""


def scorer_entries(scorers: Sequence[str], judges: Sequence[str], model: str | None) -> dict[str, Any]:
    """Scorers of an experiment, as the options of a command name them.

    Args:
        scorers: `[NAME=]KIND[:PARAMETER=VALUE,…]` or `[NAME=]FILE.py:FUNCTION`; values are read as YAML.
        judges: `[NAME=]RUBRIC`, a rubric of evaluand or a file.
        model: the model that the judges ask: an address, or YAML.

    Raises:
        SpecError: an option cannot be read, or two scorers have one name.

    Example:
        >>> scorer_entries(["numeric_answer:tolerance=0.5", "mine=app.py:polite"], ["correctness"], "openai/gpt-5-mini")
        ... # doctest: +NORMALIZE_WHITESPACE
        {'numeric_answer': {'kind': 'numeric_answer', 'tolerance': 0.5}, 'mine': {'function': 'app.py:polite'},
         'correctness': {'kind': 'judge', 'rubric': 'correctness', 'model': 'openai/gpt-5-mini'}}
    """
    if judges and model is None:
        raise SpecError("a judge asks a model; give --model PROVIDER/NAME or --model URL#NAME")
    if model is not None and not judges:
        raise SpecError("--model is the model of --judge, and there is none")
    read = [_read_scorer(text) for text in scorers]
    read += [_read_judge(text, model) for text in judges]
    entries: dict[str, Any] = {}
    for name, entry in read:
        if name in entries:
            raise SpecError(f"two scorers are called {name!r}; name one as OTHER={name}")
        entries[name] = entry
    return entries


def _read_scorer(text: str) -> tuple[str, dict[str, Any]]:
    name, word = _split_name(text)
    kind, colon, rest = word.partition(":")
    if not colon or "=" not in rest:
        return name or word.rpartition(":")[2], dict(long_form(word))
    place, written = Path(f"--scorer {text}"), _PARAMETER.sub(r"\1\2: ", rest)
    return name or kind, {"kind": kind, **Document(place, f"{{{written}}}".encode()).value}


_PARAMETER: Final = re.compile(r"(^|,)\s*(\w+)=")
"""What begins a parameter of an option: its name, where YAML has a key."""


def _read_judge(text: str, model: str | None) -> tuple[str, dict[str, Any]]:
    name, rubric = _split_name(text)
    return name or Path(rubric).stem, {"kind": "judge", "rubric": rubric, "model": read_yaml("--model", model)}


def _split_name(text: str) -> tuple[str, str]:
    """The name before the first `=`, and the rest; no name where `=` belongs to a parameter."""
    name, equals, rest = text.partition("=")
    return (name.strip(), rest) if equals and ":" not in name else ("", text)


def read_regrading(
    runs: Mapping[str, GradedRun], entries: Mapping[str, Any], file: Path | None, **chosen: Any
) -> Regrading:
    """Stored runs and what grades them.

    Args:
        runs: label → run.
        entries: scorers by name, in their long form; none with a file.
        file: an experiment file, of which what it says about tasks is left out, or a file with scorers alone.
        chosen: `samples` and `summary` of `Regrading`.

    Raises:
        SpecError: lists every fault, of a file with its line.
    """
    tasks = {label: {"kind": "stored", "run": graded.run.id} for label, graded in runs.items()}
    value: dict[str, Any] = {"name": "grade", "tasks": tasks}
    parts: dict[str, tuple[Document, Place]] = {}
    if file is not None:
        written = Document(file)
        value |= (sections := _sections(written))
        parts = {key: (written, (key,) if key in written.value else ()) for key in sections}
    else:
        value["scorers"] = dict(entries)
    if not {"metrics", "fairness"} & {*value}:
        scorers = value.get("scorers")
        words = [scorers] if isinstance(scorers, str) else scorers or ()
        value["metrics"] = [{"kind": "mean", "scorer": str(word).rpartition(":")[2]} for word in words]
    options = options_document(value)
    document = ComposedDocument(value, parts, (options, ()))
    origin = {} if file is None else {"scorers": os.path.abspath(file), "digest": written.digest}
    store = next(iter(runs.values())).run.store
    try:
        with without_place():
            spec = parse_document(document)
            folder = Path() if file is None else file.parent
            experiment = Experiment.from_parts(spec, document, folder, origin, store=store)
    except SpecError as error:
        if _NO_VALUE in str(error):
            error.add_note("by default the mean of each scorer is taken; name its metrics in a file: --scorers FILE")
        raise
    own = {field.name: getattr(experiment, field.name) for field in fields(Steps)}
    return Regrading(**own, runs=runs, **chosen)


def _sections(document: Document) -> dict[str, Any]:
    """What a file says about grading: all but the tasks of an experiment, or the scorers if it has nothing else."""
    value = document.value
    if not isinstance(value, dict):
        raise SpecError(f"{document.path}:1: give scorers: name: {{kind: …}}")
    known = {*ExperimentSpec.model_fields}
    if not any(key in known or meant_key((key,)) in known for key in value):
        return {"scorers": value}
    sections = {key: part for key, part in value.items() if key not in _OF_TASKS}
    if isinstance(run := sections.get("run"), dict):
        sections["run"] = {key: part for key, part in run.items() if key not in ("replications", "seed")}
    return sections
