"""The words with which people may label answers for the card of a judge: the verdicts of its rubric.

A card compares labels and verdicts as words, so a label that is no verdict never agrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluand.core.errors import nearest
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.human_labels import HumanLabels
from evaluand.evaluation.judges.rubric import Rubric, rubric_names
from evaluand.run.runner import Run


def explain_foreign_labels(run: Run, labels: HumanLabels) -> str:
    """The labels that are no verdict of a judge of a run, and the possible verdicts; empty if all are, or if unknown.

    Labels with a value are compared by their values, and need not be verdicts.
    """
    verdicts = verdicts_of(run)
    if not verdicts:
        return ""
    known = {word.casefold() for words in verdicts.values() for word in words}
    written = (label for of_answer in labels.labels.values() for label in of_answer if label.value is None)
    foreign = list(dict.fromkeys(each.label for each in written if each.label and each.label.casefold() not in known))
    if not foreign:
        return ""
    listed = ", ".join(map(repr, foreign[:_LISTED])) + (", …" if len(foreign) > _LISTED else "")
    judges = "; ".join(f"{name} writes {', '.join(words)}" for name, words in verdicts.items())
    every = [word for words in verdicts.values() for word in words]
    hint = nearest(foreign[0], every) if len(foreign) == 1 else ""
    return f"no judge of this run writes {listed}{hint}: {judges}; a card compares labels with verdicts word by word"


def verdicts_of(run: Run) -> dict[str, Sequence[str]]:
    """The possible verdicts of the judges of a run: by evaluand's rubrics, else the verdicts that occur."""
    found: dict[str, Sequence[str]] = {}
    for evaluation in _evaluations_of(run):
        for name in evaluation.manifest["provenance"].get("judges") or ():
            if name in evaluation.scorers and (words := _verdicts(evaluation, name)):
                found[name] = [*dict.fromkeys((*found.get(name, ()), *words))]
    return found


def _evaluations_of(run: Run) -> Iterator[Evaluation]:
    manifests = (run.store.manifest("evaluations", id) for id in run.store.ids("evaluations"))
    for manifest in manifests:
        if manifest["spec"]["run"] == run.digest and "digest" in manifest:
            yield Evaluation(run.store, manifest["id"])


def _verdicts(evaluation: Evaluation, scorer: str) -> list[str]:
    of_rubric = _labels_of_rubric(evaluation.manifest["spec"]["scorers"][scorer])
    if of_rubric is not None:
        return of_rubric
    batches = evaluation.batches(scorer, ["label"])
    given = {word for batch in batches for word in batch.column("label").unique().to_pylist() if word is not None}
    return sorted(given)


def _labels_of_rubric(spec: Mapping[str, Any]) -> list[str] | None:
    """The verdicts of the one rubric by which a judge decides, if it is one of evaluand's."""
    asked = spec.get("asked")
    digests = {each.get("rubric") for each in asked if isinstance(each, Mapping)} if isinstance(asked, list) else set()
    rubrics = (Rubric.of(name) for name in rubric_names())
    return next(([level.label for level in each.scale.levels] for each in rubrics if {each.digest} == digests), None)


_LISTED = 5
