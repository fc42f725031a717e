"""Labelled sets from stored evaluations: the scores of a judge and the labels of people for the same answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from evaluand.core import identity
from evaluand.core.errors import NotFound, SpecError, nearest, warn
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Example
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.people_labels import (
    EXPECTED,
    KEY,
    Key,
    choose_question,
    find_all_labels,
    human_scorers,
    key_of_row,
    label_column_names,
    read_label_column,
    read_stored_labels,
)
from evaluand.evaluation.units import answered_examples
from evaluand.judges.cards.labelled_set import Item, JudgeIdentity, Judgement, Label, LabelledSet
from evaluand.judges.judge_digest import questions_of
from evaluand.judges.people.human_labels import key_of, labelled
from evaluand.judges.stored_rubric import verdicts_of
from evaluand.run.excerpts import to_json
from evaluand.run.runner import Run
from evaluand.store.store import Store, resolve
from evaluand.store.tables import SCORED


def read_labelled_evaluation(
    evaluation: Evaluation, scorer: str, labels: Evaluation | str | None = None, question: str | None = None
) -> LabelledSet:
    """The answers of a run that people have labelled, with the scores of a judge.

    Replications of an example count as separate answers. If people gave numbers, they are compared with the judge's
    `value`, else with its `label`.

    Args:
        evaluation: has the judge's scores.
        scorer: the judge.
        labels: the evaluation of the same run with the labels of people, see `evaluand.HumanLabels`; or the column of
            the dataset that holds the label of each answer, `expected` or the name of one with metadata or an
            attribute. By default the newest evaluation of the run with such labels.
        question: the scorer with these labels, if the evaluation holds labels for several questions; by default the one
            called like the judge, or else the only one.

    Raises:
        NotFound: the store has lost the run, or nobody has labelled it.
        SpecError: there is no such scorer or column, the labels are of another run, or several questions were answered
            and none is called like the judge.
    """
    if scorer not in evaluation.scorers:
        known = ", ".join(evaluation.scorers)
        raise SpecError(f"no scorer is called {scorer!r}{nearest(scorer, evaluation.scorers)}; there are {known}")
    run = evaluation.run
    if run is None:
        raise NotFound(f"the run of {evaluation!r} is not in the store, so its answers cannot be labelled")
    made_from = [(EVALUATIONS, evaluation.id)]
    if isinstance(labels, str):
        question = labels
        people, given = read_label_column(run, labels)
    else:
        found = find_labels(evaluation.store, run) if labels is None else labels
        if found.manifest["spec"]["run"] != run.digest:
            raise SpecError(f"{found!r} has labels of another run; import the files of labels for this run")
        question = choose_question(found, scorer, question)
        people, given = read_stored_labels(found, question)
        made_from.append((EVALUATIONS, found.id))
    of_numbers = _are_numbers(given)
    scores = _read_scores(evaluation, scorer, of_numbers=of_numbers)
    items, usage = [], []
    for answer in _read_answers(run):
        if answer.key not in given or answer.key not in scores:
            continue
        score = scores[answer.key]
        usage += [score.usage] if score.usage else []
        items.append(answer.item(given[answer.key], score.judgement))
    judge = judge_of(evaluation, scorer)
    judge = judge._replace(model=answering_model(usage) or judge.model)
    range = evaluation.ranges.get(scorer, {}).get("value") if of_numbers else None
    seconds = read_seconds(usage)
    return LabelledSet(
        items,
        judge,
        people,
        usage=usage,
        seconds=seconds,
        made_from=made_from,
        judge_range=range,
        verdicts=() if of_numbers else verdicts_of(evaluation.manifest, scorer),
        question=question,
    )


def read_labelled_answers(run: Run, labels: Evaluation | None, question: str) -> list[AnswerTo]:
    """The answers of a run that people have labelled.

    Args:
        labels: the evaluation of the run with the labels; None for a column of its dataset.
        question: the scorer of people, or the column.
    """
    given = read_label_column(run, question)[1] if labels is None else read_stored_labels(labels, question)[1]
    return [each for each in answers_to(run, {index for index, _, _ in given}) if each.key in given]


class AnswerTo(NamedTuple):
    """An answer to an example.

    Attributes:
        key: `_index_`, replication and the number of the answer.
        example: what was answered.
        digest: equal for equal answers to the example, in any run.
    """

    key: Key
    example: Example
    digest: str

    @property
    def group(self) -> str:
        """Identifies the examples that depend on this one, see `Item.example`."""
        return _group_of(self.example)


def answers_to(run: Run, indices: Collection[int]) -> Iterator[AnswerTo]:
    """The answers of a run to some examples, by their `_index_`."""
    dataset = run.dataset
    chosen = [position for position, index in enumerate(dataset.indices) if index in indices]
    examples = {example.index: example for example in dataset.examples_at(chosen)}
    rows = (index for batch in run.batches([INDEX]) for index in batch.column(INDEX).to_pylist())
    for response in run.at([row for row, index in enumerate(rows) if index in examples]):
        example = examples[response.index]
        for number, output in enumerate(response.responses or ()):
            key = (response.index, response.replication, number)
            yield AnswerTo(key, example, key_of(example.digest, output))


def judge_of(evaluation: Evaluation, scorer: str) -> JudgeIdentity:
    """Which judge a scorer of an evaluation is."""
    spec = evaluation.manifest["spec"]["scorers"][scorer]
    origin = evaluation.manifest["provenance"]
    parts = {name: str(part) for name, part in ((origin.get("parts") or {}).get(scorer) or {}).items()}
    pinned = not any(why.startswith(f"{scorer}: ") for why in origin.get("unpinned") or ())
    return JudgeIdentity(scorer, spec, parts, model_of(spec), pinned)


def model_of(spec: Mapping[str, Any]) -> str | None:
    """The name of the model that judges, if a judge's identity names exactly one."""
    models = [each.get("model") for each in questions_of(spec)]
    names = {model.get("model") if isinstance(model, Mapping) else model for model in models}
    name = names.pop() if len(names) == 1 else None
    return name if isinstance(name, str) else None


def read_seconds(usages: Iterable[Mapping[str, Any]]) -> list[float]:
    """How long the requests of each usage took on average, as far as that is known."""
    answered = ((usage, usage.get("requests", 0) - usage.get("failed", 0)) for usage in usages)
    return [usage["seconds"] / n for usage, n in answered if n > 0 and "seconds" in usage]


def answering_model(usages: Iterable[Mapping[str, Any] | None]) -> str | None:
    """The name by which the model answered, such as one with a date, if all usages have the same."""
    named = {(usage or {}).get("model") for usage in usages} - {None}
    name = named.pop() if len(named) == 1 else None
    return name if isinstance(name, str) else None


def find_labels(store: Store, run: Run) -> Evaluation:
    """The newest evaluation of a run that holds labels by people; a warning names the others.

    Raises:
        NotFound: there is none.
    """
    if not (found := find_all_labels(store, run)):
        name = run.name or run.id[:12]
        raise NotFound(
            f"nobody has labelled run {name}; write a file to fill in with `evaluand label export {name} -o"
            f" labels.jsonl` and import it with `evaluand label import {name} labels.jsonl`, or name the column of the"
            " dataset that holds the labels (--labels COLUMN)"
        )
    if len(found) > 1:
        warn(describe_labels(found))
    return found[0]


def describe_labels(found: Sequence[Evaluation]) -> str:
    """Which of several evaluations with labels counts, which others there are, and how to choose.

    Args:
        found: at least two, the newest first.
    """
    texts = [f"{each.id[:12]} ({_count_labels(each):,} labelled)" for each in found[: _LISTED + 1]]
    others = ", ".join(texts[1:]) + (", …" if len(found) > len(texts) else "")
    of_run = "1 other evaluation of the run has" if len(found) == 2 else f"{len(found) - 1} others of the run have"
    return f"the newest labels count, {texts[0]}; {of_run} labels: {others}; choose with --labels ID"


def _count_labels(evaluation: Evaluation) -> int:
    return labelled(evaluation, human_scorers(evaluation)[0]).labelled


_LISTED: Final = 3


def open_labels(store: Store, name: str, run: Run) -> Evaluation | str:
    """Labels by the name of their evaluation, or the column of a run's dataset.

    Raises:
        SpecError: it is neither, or an evaluation without labels.
    """
    try:
        kind, id = resolve(store, name)
    except NotFound:
        if name == EXPECTED or name in label_column_names(run.dataset):
            return name
        raise
    if kind != EVALUATIONS:
        try:
            kind, id = resolve(store, name, EVALUATIONS)
        except NotFound:
            raise SpecError(f"{name!r} is no evaluation; name the one with the labels of people") from None
    evaluation = Evaluation(store, id)
    if not human_scorers(evaluation):
        raise SpecError(f"{name!r} holds no labels by people; import them with `evaluand label import`")
    return evaluation


def _group_of(example: Example) -> str:
    """Identifies the examples that depend on each other: its cluster, or the example itself."""
    return example.digest.hex() if example.cluster is None else identity.digest(["cluster", example.cluster]).hex()


class _Answer(NamedTuple):
    key: Key
    example: Example
    output: Any
    model: str | None

    def item(self, labels: tuple[Label | None, ...], judgement: Judgement) -> Item:
        example, output = self.example, to_json(self.output)
        return Item(
            _group_of(example),
            key_of(example.digest, self.output),
            example.id,
            labels,
            (judgement,),
            lengths=(len(output),) if isinstance(output, str) else (),
            models=() if self.model is None else (self.model,),
            texts={"input": to_json(example.input), "response": output},
        )


def _read_answers(run: Run) -> Iterator[_Answer]:
    for (response, example), model in zip(answered_examples(run), _read_models(run), strict=True):
        for number, output in enumerate(response.responses or ()):
            yield _Answer((response.index, response.replication, number), example, output, model)


def _read_models(run: Run) -> Iterator[str | None]:
    """The model that wrote each response, where its usage says so."""
    for batch in run.batches(["usage"]):
        for usage in batch.column("usage").to_pylist():
            yield (usage or {}).get("model")


def _are_numbers(given: Mapping[Key, tuple[Label | None, ...]]) -> bool:
    return all(isinstance(label, float | int) for labels in given.values() for label in labels if label is not None)


class _Scored(NamedTuple):
    judgement: Judgement
    usage: Mapping[str, Any] | None


def _read_scores(evaluation: Evaluation, scorer: str, *, of_numbers: bool) -> dict[Key, _Scored]:
    """What a judge said about each answer.

    Raises:
        SpecError: it gives no numbers where people do, or no words.
    """
    field, other = ("value", "label") if of_numbers else ("label", "value")
    found: dict[Key, _Scored] = {}
    has_other = False
    columns = [*KEY, "target", "status", "reason", field, other, "explanation", "usage"]
    for batch in evaluation.batches(scorer, columns):
        for row in batch.to_pylist():
            if row["target"] is not None:
                raise SpecError(f"scorer {scorer!r} grades targets separately; a card is of a judge of whole answers")
            usage = None if row["usage"] is None else orjson.loads(row["usage"])
            reason = None if row["status"] == SCORED else f"{row['status']}: {row['reason']}"
            label = row[field] if row["status"] == SCORED else None
            has_other |= row["status"] == SCORED and label is None and row[other] is not None
            found[key_of_row(row)] = _Scored(Judgement(label, reason, row["explanation"]), usage)
    if has_other and all(each.judgement.label is None for each in found.values()):
        words = ("numbers", "words") if of_numbers else ("words", "numbers")
        raise SpecError(f"people gave {words[0]}, and {scorer!r} gives only {words[1]}, so they cannot be compared")
    return found
