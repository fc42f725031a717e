"""What people say about answers: their labels, stored or in a column, and as numbers on the scale of a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from evaluand.core.errors import DataError, NotFound, SpecError, nearest
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.units import answered_examples
from evaluand.run.runner import Run
from evaluand.store.store import Store, find_sealed
from evaluand.store.tables import SCORED

EXPECTED: Final = "expected"
HUMAN: Final = "human"
"""The kind of the scorer whose scores people gave."""

Said = float | str
"""What somebody says about an answer: a number or a word."""

Key = tuple[int, int, int]
"""`_index_`, replication and the number of the answer."""

KEY: Final = (INDEX, "replication", RESPONSE_INDEX)


def human_scorers(evaluation: Evaluation) -> list[str]:
    """The scorers of an evaluation that hold labels by people."""
    specs = evaluation.manifest["spec"]["scorers"]
    return [name for name, spec in specs.items() if spec.get("kind") == HUMAN]


def find_people(evaluation: Evaluation) -> Evaluation | None:
    """The newest evaluation of the same run that holds labels by people; None if nobody has labelled it.

    Raises:
        NotFound: the run is not in the store.
    """
    if (run := evaluation.run) is None:
        raise NotFound(f"the run of {evaluation!r} is not in the store, so labels cannot be read")
    return next(iter(find_all_labels(evaluation.store, run)), None)


def read_people_values(evaluation: Evaluation, scorer: str, labels: str | None = None) -> dict[Key, float]:
    """The number that people give each answer that they have labelled: the mean of several people.

    Of words, which stand for the values of the judge's verdicts, that of the majority; without one, no label.

    Args:
        scorer: the judge.
        labels: a column of the dataset, or the question if people answered several; by default the newest labels of the
            run.

    Raises:
        NotFound: the run is not in the store.
        SpecError: there is no such column, or none of several questions is called like the judge.
        DataError: people gave words that are no verdicts of the judge.
    """
    people = find_people(evaluation)
    run = evaluation.run
    if labels is not None and run is not None and labels in label_column_names(run.dataset):
        given = read_label_column(run, labels)[1]
    elif people is None and labels is None:
        return {}
    elif people is None or (labels is not None and labels not in human_scorers(people)):
        raise NotFound(
            f"labels {labels!r} are neither a column of the dataset nor a question that people have answered"
        )
    else:
        given = read_stored_labels(people, choose_question(people, scorer, labels))[1]
    said = {key: [label for label in of_answer if label is not None] for key, of_answer in given.items()}
    words = any(isinstance(label, str) for of_answer in said.values() for label in of_answer)
    if not words:
        return {key: sum(map(float, of_answer)) / len(of_answer) for key, of_answer in said.items()}
    values = _values_of_verdicts(evaluation, scorer)
    _check_words(said.values(), values, scorer)
    majority = {key: _majority(of_answer) for key, of_answer in said.items()}
    return {key: values[word] for key, word in majority.items() if word is not None}


def _majority(labels: Sequence[Said]) -> str | None:
    word, votes = Counter(str(label).casefold() for label in labels).most_common(1)[0]
    return word if 2 * votes > len(labels) else None


def _values_of_verdicts(evaluation: Evaluation, scorer: str) -> dict[str, float]:
    """Verdict → value: those of the judge's rubric, or else those that it has given; in lower case."""
    rubrics = (evaluation.manifest["provenance"].get("rubrics") or {}).get(scorer, ())
    found: dict[str, float] = {}
    if len(rubrics) == 1:
        found = {str(label).casefold(): float(value) for label, value, *_ in rubrics[0]["content"]["values"]}
    for batch in evaluation.batches(scorer, ["status", "value", "label"]) if not found else ():
        for row in batch.to_pylist():
            if row["status"] == SCORED and row["label"] is not None and row["value"] is not None:
                found[row["label"].casefold()] = row["value"]
    return found


def _check_words(said: Iterable[Sequence[Said]], values: Mapping[str, float], scorer: str) -> None:
    every = dict.fromkeys(str(label) for of_answer in said for label in of_answer)
    foreign = [word for word in every if word.casefold() not in values]
    if foreign:
        known = ", ".join(values) or "numbers alone"
        raise DataError(
            f"people say {', '.join(foreign[:_SHOWN])}, and judge {scorer!r} says {known}; import the labels again and"
            f" say what each word means: `--word {foreign[0]}=VERDICT`"
        )


_SHOWN = 5


def choose_question(labels: Evaluation, judge: str, question: str | None = None) -> str:
    """The scorer with labels by people that answer the question of a judge.

    Args:
        question: its name; by default that of the judge, or else the only one.

    Raises:
        SpecError: there is none of this name, or several have other names than the judge.
    """
    known = human_scorers(labels)
    if question is not None:
        if question not in known:
            raise SpecError(
                f"{labels!r} has no labels called {question!r}{nearest(question, known)}: {', '.join(known)}"
            )
        return question
    if judge in known or len(known) == 1:
        return judge if judge in known else known[0]
    raise SpecError(
        f"people have answered several questions, none of which is called {judge!r}: {', '.join(known)}; name the one"
        f" that the judge answers (--column label={known[0]}, in Python question={known[0]!r})"
    )


def find_all_labels(store: Store, run: Run) -> list[Evaluation]:
    """The evaluations that hold labels by people of the answers of a run, the newest first.

    People grade answers, so their labels count for every run with the same ones.
    """
    found = (Evaluation(store, manifest["id"]) for manifest in find_sealed(store, EVALUATIONS, run.digest))
    return [evaluation for evaluation in found if human_scorers(evaluation)]


def label_column_names(dataset: Dataset) -> list[str]:
    roles = dataset.roles
    expected = [] if roles.expected is None else [EXPECTED]
    return [*expected, *roles.attributes, *roles.metadata]


def read_label_column(run: Run, column: str) -> tuple[list[str | None], dict[Key, tuple[Said | None, ...]]]:
    """The labels in a column of the dataset, for each answer to an example."""
    known = label_column_names(run.dataset)
    if column not in known:
        raise SpecError(f"no column with labels is called {column!r}{nearest(column, known)}: {', '.join(known)}")
    found: dict[Key, tuple[Said | None, ...]] = {}
    for response, example in answered_examples(run):
        value = example.expected if column == EXPECTED else {**example.metadata, **example.attributes}[column]
        if isinstance(value, bool | int | float | str):
            said = value if isinstance(value, str) else float(value)
            for number in range(len(response.responses or ())):
                found[response.index, response.replication, number] = (said,)
    if not found:
        raise SpecError(f"the column {column!r} holds no labels; they must be numbers, words, true or false")
    return [None], found


def read_stored_labels(
    evaluation: Evaluation, name: str
) -> tuple[list[str | None], dict[Key, tuple[Said | None, ...]]]:
    """The people who have labelled, and their labels of each answer; numbers where all labels have them."""
    said: dict[Key, list[Mapping[str, Any]]] = {}
    for batch in evaluation.batches(name, [*KEY, "value", "label", "data", "by", "n_labels"]):
        for row in batch.to_pylist():
            if row["n_labels"]:
                alone = {"value": row["value"], "label": row["label"], "by": next(iter(row["by"] or ()), None)}
                said[key_of_row(row)] = orjson.loads(row["data"]) if row["data"] else [alone]
    every = [label for labels in said.values() for label in labels]
    field = "value" if every and all(label["value"] is not None for label in every) else "label"
    people = sorted({label["by"] for label in every}, key=lambda by: (by is None, by or ""))
    found = {}
    for key, labels in said.items():
        by_person = {label["by"]: label[field] for label in labels}
        found[key] = tuple(by_person.get(person) for person in people)
    return people, {key: labels for key, labels in found.items() if any(label is not None for label in labels)}


def key_of_row(row: Mapping[str, Any]) -> Key:
    return row[INDEX], row["replication"], row[RESPONSE_INDEX] or 0
