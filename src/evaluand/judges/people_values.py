"""What people say about the answers that a judge has graded, as numbers on the judge's scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from evaluand.core.errors import DataError, NotFound
from evaluand.evaluation.evaluator import Evaluation
from evaluand.judges.cards.from_evaluation import (
    Key,
    choose_question,
    find_all_labels,
    label_column_names,
    read_label_column,
    read_stored_labels,
)
from evaluand.judges.cards.labelled_set import Label
from evaluand.judges.people.human_labels import human_scorers
from evaluand.judges.stored_rubric import stored_rubrics
from evaluand.store.tables import SCORED


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


def _majority(labels: Sequence[Label]) -> str | None:
    word, votes = Counter(str(label).casefold() for label in labels).most_common(1)[0]
    return word if 2 * votes > len(labels) else None


def _values_of_verdicts(evaluation: Evaluation, scorer: str) -> dict[str, float]:
    """Verdict → value: those of the judge's rubric, or else those that it has given; in lower case."""
    rubrics = stored_rubrics(evaluation.manifest).get(scorer, ())
    found: dict[str, float] = {}
    if len(rubrics) == 1:
        found = {str(label).casefold(): float(value) for label, value, *_ in rubrics[0].content["values"]}
    for batch in evaluation.batches(scorer, ["status", "value", "label"]) if not found else ():
        for row in batch.to_pylist():
            if row["status"] == SCORED and row["label"] is not None and row["value"] is not None:
                found[row["label"].casefold()] = row["value"]
    return found


def _check_words(said: Iterable[Sequence[Label]], values: Mapping[str, float], scorer: str) -> None:
    every = dict.fromkeys(str(label) for of_answer in said for label in of_answer)
    foreign = [word for word in every if word.casefold() not in values]
    if foreign:
        known = ", ".join(values) or "numbers alone"
        raise DataError(
            f"people say {', '.join(foreign[:_SHOWN])}, and judge {scorer!r} says {known}; import the labels again and"
            f" say what each word means: `--word {foreign[0]}=VERDICT`"
        )


_SHOWN = 5
