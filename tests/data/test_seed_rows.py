"""One shape of tables for five kinds of evaluation: a tagger's alternatives, classifiers by group, two tasks compared,
targets with boxes and folds, graded contexts. Every expected value was worked out by hand, beside its test.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorer import Score
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Count, Mean
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Candidates, task
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import MemoryStore

KEY = ("_index_", "replication", "_response_index_", "target")


def rows(evaluation: Evaluation, scorer: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in evaluation.table(scorer).to_pylist()]


def found(aggregation: Aggregation, *columns: str) -> list[tuple[Any, ...]]:
    """The columns of the metric rows; `by` as a dict."""
    table = [row | {"by": dict(row["by"])} for row in aggregation.table().to_pylist()]
    return [tuple(row[column] for column in columns) for row in table]


def lines(path: Path, records: list[dict[str, Any]]) -> str:
    path.write_text("\n".join(map(json.dumps, records)))
    return str(path)


# A text tagger with alternatives and replications


def span(start: int, end: int, tag: str) -> dict[str, Any]:
    return {"start": start, "end": end, "tag": tag}


ADA, BOB, OSLO, OSLO_WRONG = span(0, 3, "PER"), span(8, 11, "PER"), span(15, 19, "LOC"), span(15, 19, "PER")
NOTHING = span(0, 7, "LOC")

TAGGED = Dataset.from_rows(
    [
        {"input": "Ada met Bob in Oslo", "expected": [ADA, BOB, OSLO]},
        {"input": "nothing to see", "expected": []},
        {"input": "broken", "expected": [span(0, 6, "LOC")]},
    ]
)

TAGGER_GIVES = {
    ("Ada met Bob in Oslo", 0): Candidates([[ADA, BOB, OSLO_WRONG], [ADA, BOB, OSLO]]),
    ("Ada met Bob in Oslo", 1): Candidates([[ADA], []]),
    ("nothing to see", 0): [],
    ("nothing to see", 1): [NOTHING],
    ("broken", 1): None,
}


@task(version="1", items=True)
def tag(text: str, replication: int) -> Any:
    if (text, replication) not in TAGGER_GIVES:
        raise RuntimeError("out of memory")
    return TAGGER_GIVES[text, replication]


def overlap(output: list[dict[str, Any]], expected: list[dict[str, Any]]) -> float:
    """Spans in both ÷ spans in either; nothing found where nothing is to be found is right."""
    one, other = ({json.dumps(item, sort_keys=True) for item in spans} for spans in (output, expected))
    return len(one & other) / len(one | other) if one | other else 1.0


@pytest.fixture(scope="module")
def tagged() -> Run:
    return Runner().run(tag, TAGGED, replications=2)


def test_a_taggers_rows_hold_every_span_under_its_response(tagged: Run) -> None:
    columns = ("_index_", "replication", "status", "n_responses", "responses", "error")
    table = [tuple(row[column] for column in columns) for row in tagged.table().to_pylist()]
    items = [row[4] and [(item["_response_index_"], json.loads(item["value"])) for item in row[4]] for row in table]
    assert [row[:4] for row in table] == [
        (0, 0, "completed", 2),
        (0, 1, "completed", 2),
        (1, 0, "completed", 1),
        (1, 1, "completed", 1),
        (2, 0, "failed", 0),
        (2, 1, "completed", 0),
    ]
    assert items == [
        [(0, ADA), (0, BOB), (0, OSLO_WRONG), (1, ADA), (1, BOB), (1, OSLO)],
        [(0, ADA)],  # the second alternative is empty: only n_responses tells that it is there
        [],  # an empty answer
        [(0, NOTHING)],
        None,  # a crash
        None,  # no answer
    ]
    assert [(row[5]["type"], row[5]["message"]) for row in table if row[5]] == [("RuntimeError", "out of memory")]


def test_a_taggers_responses_are_read_back_as_lists_of_spans(tagged: Run) -> None:
    assert [response.responses for response in tagged] == [
        [[ADA, BOB, OSLO_WRONG], [ADA, BOB, OSLO]],
        [[ADA], []],
        [[]],
        [[NOTHING]],
        None,
        None,
    ]


def test_a_taggers_scores_have_one_row_for_each_response_and_one_for_each_that_is_missing(tagged: Run) -> None:
    evaluation = Evaluator().evaluate(tagged, {"overlap": overlap})
    assert rows(evaluation, "overlap", *KEY, "status", "value") == [
        (0, 0, 0, None, "scored", 2 / 4),  # two in both; Ada, Bob and Oslo as place or as person in either
        (0, 0, 1, None, "scored", 1.0),
        (0, 1, 0, None, "scored", 1 / 3),
        (0, 1, 1, None, "scored", 0.0),  # none of three
        (1, 0, 0, None, "scored", 1.0),  # rightly empty
        (1, 1, 0, None, "scored", 0.0),
        (2, 0, None, None, "failed", None),
        (2, 1, None, None, "abstained", None),
    ]
    assert rows(evaluation, "overlap", "reason")[6:] == [
        ("task: RuntimeError: out of memory",),
        ("the task gave no answer",),
    ]
    assert evaluation.counts == {"overlap": {"scored": 6, "failed": 1, "abstained": 1}}


def test_a_taggers_mean_counts_examples_times_replications_and_shows_what_is_missing(tagged: Run) -> None:
    evaluation = Evaluator().evaluate(tagged, {"overlap": overlap})
    metrics = [Mean(range=(0, 1)), Mean(range=(0, 1), reduce="best"), Count()]
    aggregation = Aggregator().aggregate([evaluation], [Measure("overlap", metric) for metric in metrics])
    counts = ("n", "n_scored", "n_failed", "n_abstained", "n_skipped")
    assert found(aggregation, *counts) == [(6, 4, 1, 1, 0)] * 3
    first, best, count = found(aggregation, "value", "worst", "best")
    # First responses: 1/2 + 1/3 + 1 + 0 = 11/6 over 4 scored; with the 2 missing at 0 or at 1, over 6.
    assert first == pytest.approx((11 / 24, 11 / 36, 23 / 36))
    # Best responses: 1 + 1/3 + 1 + 0 = 7/3.
    assert best == pytest.approx((7 / 12, 7 / 18, 13 / 18))
    assert count[0] == 4.0


def test_the_exported_replication_follows_from_the_stored_key(tagged: Run) -> None:
    numbers = tagged.table()["replication"].unique().to_pylist()
    assert numbers == [0, 1]
    for number in numbers:
        name = bytearray(hashlib.sha1(bytes.fromhex(tagged.id)[:16] + str(number).encode()).digest()[:16])
        name[6], name[8] = name[6] & 0x0F | 0x50, name[8] & 0x3F | 0x80  # RFC 9562: version 5 and its variant
        assert uuid.uuid5(uuid.UUID(hex=tagged.id), str(number)).bytes == bytes(name)


# Two models' confidences on six samples with a sensitive attribute, labelled at the operating point 0.545

SCORES = (
    (0.646910, 0.442378, 0.342101, 0.457198, 0.549640, 0.331999),
    (0.623593, 0.453462, 0.370829, 0.466496, 0.542477, 0.359879),
)
TRUTH = (0, 0, 0, 1, 1, 0)
RACE = (1, 0, 2, 1, 0, 0)
LABELS = ((1, 0, 0, 0, 1, 0), (1, 0, 0, 0, 0, 0))


@pytest.fixture
def models(tmp_path: Path) -> list[Evaluation]:
    pairs = [{"scores": [SCORES[m][i] for m in (0, 1)], "labels": [LABELS[m][i] for m in (0, 1)]} for i in range(6)]
    path = lines(tmp_path / "scores.jsonl", pairs)
    data = Dataset.from_rows(
        [{"sample": i, "truth": TRUTH[i], "race": RACE[i]} for i in range(6)],
        input="sample",
        expected="truth",
        attributes="race",
    )
    runner = Runner()
    tasks = [
        RecordedTask(path=path, response={"prediction": f"labels[{m}]", "confidence": f"scores[{m}]"}) for m in (0, 1)
    ]
    runs = [runner.run(model, data, name=f"model-{m + 1}") for m, model in enumerate(tasks)]
    return [Evaluator().evaluate(run, {"prediction": Prediction(type="integer")}) for run in runs]


def test_recorded_confidences_are_stored_with_truth_and_prediction(models: list[Evaluation]) -> None:
    for evaluation, labels, scores in zip(models, LABELS, SCORES, strict=True):
        expected = [
            (i, truth, label, score, float(truth == label))
            for i, (truth, label, score) in enumerate(zip(TRUTH, labels, scores, strict=True))
        ]
        assert rows(evaluation, "prediction", "_index_", "truth", "prediction", "confidence", "value") == expected


def test_accuracy_and_counts_by_attribute_are_those_counted_by_hand(models: list[Evaluation]) -> None:
    by = (("race",),)
    aggregation = Aggregator().aggregate(
        models, [Measure("prediction", Accuracy(), by), Measure("prediction", Count(), by)]
    )
    # Right are samples 1, 2, 4 and 5 of the first model and 1, 2 and 5 of the second. Of race 0 are samples 1, 4 and
    # 5, of race 1 samples 0 and 3, of race 2 sample 2.
    assert found(aggregation, "evaluation", "metric", "by", "value", "n") == [
        (0, "accuracy", {}, pytest.approx(4 / 6), 6),
        (0, "accuracy", {"race": "0"}, 1.0, 3),
        (0, "accuracy", {"race": "1"}, 0.0, 2),
        (0, "accuracy", {"race": "2"}, 1.0, 1),
        (0, "count", {}, 6.0, 6),
        (0, "count", {"race": "0"}, 3.0, 3),
        (0, "count", {"race": "1"}, 2.0, 2),
        (0, "count", {"race": "2"}, 1.0, 1),
        (1, "accuracy", {}, pytest.approx(3 / 6), 6),
        (1, "accuracy", {"race": "0"}, pytest.approx(2 / 3), 3),
        (1, "accuracy", {"race": "1"}, 0.0, 2),
        (1, "accuracy", {"race": "2"}, 1.0, 1),
        (1, "count", {}, 6.0, 6),
        (1, "count", {"race": "0"}, 3.0, 3),
        (1, "count", {"race": "1"}, 2.0, 2),
        (1, "count", {"race": "2"}, 1.0, 1),
    ]


# Two tasks compared on one dataset

DOCUMENT = "Ada wrote notes. They became famous."
SUMMARIES = Dataset.from_rows([{"id": "e1", "input": DOCUMENT, "expected": "Ada wrote notes."}])


def first_sentence(document: str) -> str:
    return document.partition(".")[0] + "."


def first_words(document: str) -> str:
    return " ".join(document.split()[:2])


def first_sentence_otherwise(document: str) -> str:
    return document[: document.index(".") + 1]


def equal(output: str, expected: str) -> bool:
    return output == expected


def recall(output: str, expected: str) -> float:
    """Expected words that the output has ÷ expected words."""
    return sum(word in output.split() for word in expected.split()) / len(expected.split())


def compared(*tasks: Any) -> list[Evaluation]:
    runner = Runner()
    runs = [runner.run(compared_task, SUMMARIES) for compared_task in tasks]
    return [Evaluator().evaluate(run, {"equal": equal, "recall": recall}) for run in runs]


def test_the_rows_of_two_tasks_on_one_dataset_join_on_the_key() -> None:
    one, other = compared(first_sentence, first_words)
    pairs = one.table("recall").join(other.table("recall"), list(KEY[:3]), right_suffix=" of the other").to_pylist()
    # "Ada wrote notes." has 3 of 3 words, "Ada wrote" has 2 of 3.
    assert [(row["_index_"], row["value"], row["value of the other"]) for row in pairs] == [(0, 1.0, 2 / 3)]
    assert one.manifest["spec"]["dataset"] == other.manifest["spec"]["dataset"]
    assert one.manifest["spec"]["run"] != other.manifest["spec"]["run"]


def test_one_aggregation_over_two_evaluations_distinguishes_their_rows() -> None:
    evaluations = compared(first_sentence, first_words)
    measures = [Measure("equal", Accuracy()), Measure("recall", Mean(range=(0, 1)))]
    aggregation = Aggregator().aggregate(evaluations, measures)
    one, other = (evaluation.manifest["spec"]["run"] for evaluation in evaluations)
    assert found(aggregation, "evaluation", "run_digest", "scorer", "value", "n") == [
        (0, one, "equal", 1.0, 1),
        (0, one, "recall", 1.0, 1),
        (1, other, "equal", 0.0, 1),
        (1, other, "recall", pytest.approx(2 / 3), 1),
    ]


def test_tasks_that_answer_alike_are_still_two_rows() -> None:
    evaluations = compared(first_sentence, first_sentence_otherwise)
    aggregation = Aggregator().aggregate(evaluations, [Measure("equal", Accuracy())])
    assert found(aggregation, "evaluation", "value") == [(0, 1.0), (1, 1.0)]


def test_evaluating_again_with_a_further_task_repeats_nothing() -> None:
    store = MemoryStore()
    runner, evaluator = Runner(store), Evaluator(store)
    evaluator.evaluate(runner.run(first_sentence, SUMMARIES), {"recall": recall})
    again = evaluator.evaluate(runner.run(first_sentence, SUMMARIES), {"recall": recall})
    further = evaluator.evaluate(runner.run(first_words, SUMMARIES), {"recall": recall})
    assert [evaluation.receipt and evaluation.receipt.called for evaluation in (again, further)] == [0, 1]


# Targets, boxes, repeats with folds, several labels


def test_targets_are_rows_and_a_missing_prediction_stays_in_the_denominator(tmp_path: Path) -> None:
    (tmp_path / "predictions.csv").write_text("d3mIndex,hits,runs,walks\n20,4,0,6\n10,1,2,\n")
    (tmp_path / "targets.csv").write_text("_index_,player,hits,runs,walks\n10,a,1,2,3\n20,b,4,5,6\n")
    names = ("hits", "runs", "walks")
    data = Dataset.from_file(tmp_path / "targets.csv", input="player", expected=list(names))
    model = RecordedTask(
        path=str(tmp_path / "predictions.csv"), response={name: name for name in names}, key="d3mIndex"
    )
    evaluation = Evaluator().evaluate(Runner().run(model, data), {"prediction": Prediction(type="integer")})
    assert rows(evaluation, "prediction", *KEY, "status", "truth", "prediction", "value") == [
        (10, 0, 0, "hits", "scored", 1, 1, 1.0),
        (10, 0, 0, "runs", "scored", 2, 2, 1.0),
        (10, 0, 0, "walks", "abstained", 3, None, None),
        (20, 0, 0, "hits", "scored", 4, 4, 1.0),
        (20, 0, 0, "runs", "scored", 5, 0, 0.0),
        (20, 0, 0, "walks", "scored", 6, 6, 1.0),
    ]
    aggregation = Aggregator().aggregate([evaluation], [Measure("prediction", Accuracy())])
    columns = ("target", "value", "worst", "best", "n", "n_scored", "n_abstained")
    assert found(aggregation, *columns) == [
        ("hits", 1.0, 1.0, 1.0, 2, 2, 0),
        ("runs", 0.5, 0.5, 0.5, 2, 2, 0),
        ("walks", 1.0, 0.5, 1.0, 2, 1, 1),
    ]


def share_of_boxes_found(output: list[dict[str, Any]], expected: list[list[int]]) -> float:
    """Expected boxes that a detection of their own covers by at least half ÷ expected boxes."""
    free = [item["bounding_box"] for item in output]
    hits = 0
    for truth in expected:
        hit = next((box for box in free if intersection_over_union(box, truth) >= 0.5), None)
        if hit is not None:
            free.remove(hit)
            hits += 1
    return hits / len(expected)


def intersection_over_union(one: list[int], other: list[int]) -> float:
    """Of boxes x_min, y_min, x_max, y_max that include their last pixels."""

    def area(x_min: int, y_min: int, x_max: int, y_max: int) -> int:
        return max(x_max - x_min + 1, 0) * max(y_max - y_min + 1, 0)

    low, high = map(max, zip(one[:2], other[:2], strict=True)), map(min, zip(one[2:], other[2:], strict=True))
    common = area(*low, *high)
    return common / (area(*one) + area(*other) - common)


def test_an_image_is_an_example_and_its_boxes_are_the_items_of_one_response(tmp_path: Path) -> None:
    boxes = [
        {"d3mIndex": 7, "bounding_box": [330, 463, 387, 505], "confidence": 0.0739},
        {"d3mIndex": 8, "bounding_box": [480, 477, 508, 522], "confidence": 0.1012},
        {"d3mIndex": 9, "bounding_box": [357, 460, 417, 537], "confidence": 0.1058},
    ]
    data = Dataset.from_rows(
        [{"image": "img_00285.png", "truth": [[480, 457, 515, 529]] * 2}], input="image", expected="truth"
    )
    path = lines(tmp_path / "detections.jsonl", [{"_index_": 0, "boxes": boxes}])
    run = Runner().run(RecordedTask(path=path, response="boxes", items=True), data)
    [row] = run.table().to_pylist()
    assert (row["_index_"], row["n_responses"]) == (0, 1)
    assert [(item["_response_index_"], json.loads(item["value"])) for item in row["responses"]] == [
        (0, box) for box in boxes
    ]
    evaluation = Evaluator().evaluate(run, {"found": share_of_boxes_found})
    # The second detection lies within the truth: 29 × 46 of 36 × 73 pixels, 1334/2628 = 0.508. It is used up by the
    # first of two equal truths; the other detections touch neither.
    assert rows(evaluation, "found", *KEY, "value") == [(0, 0, 0, None, 1 / 2)]


FOLDS = {0: (0, 0, 1, 1), 1: (0, 1, 0, 1)}
LABELLED = {0: "aabb", 1: "abbb"}


def cross_validated(folder: Path) -> Run:
    """Four examples in two repeats of two folds; the rows of the file stand in another order."""
    records = [
        {"d3mIndex": i, "repeat": repeat, "fold": FOLDS[repeat][i], "label": LABELLED[repeat][i]}
        for repeat in (1, 0)
        for i in (3, 0, 2, 1)
    ]
    path = lines(folder / "predictions.jsonl", records)
    model = RecordedTask(path=path, response="label", key="d3mIndex", replication="repeat", fold_key="fold")
    data = Dataset.from_rows([{"input": i, "expected": label} for i, label in enumerate("abab")])
    return Runner().run(model, data, replications=2)


IN_FOLDS = [(i, repeat, FOLDS[repeat][i]) for i in range(4) for repeat in (0, 1)]


def test_repeats_are_replications_and_folds_a_column(tmp_path: Path) -> None:
    run = cross_validated(tmp_path)
    columns = ("_index_", "replication", "fold")
    assert [tuple(row[column] for column in columns) for row in run.table().to_pylist()] == IN_FOLDS
    evaluation = Evaluator().evaluate(run, {"prediction": Prediction()})
    assert rows(evaluation, "prediction", *columns) == IN_FOLDS
    # Truth a b a b. Repeat 0 gave a a b b: right at 0 and 3. Repeat 1 gave a b b b: right at 0, 1 and 3.
    assert rows(evaluation, "prediction", "_index_", "replication", "value") == [
        (0, 0, 1.0),
        (0, 1, 1.0),
        (1, 0, 0.0),
        (1, 1, 1.0),
        (2, 0, 0.0),
        (2, 1, 0.0),
        (3, 0, 1.0),
        (3, 1, 1.0),
    ]
    aggregation = Aggregator().aggregate([evaluation], [Measure("prediction", Accuracy())])
    assert found(aggregation, "value", "n") == [(5 / 8, 8)]


def evaluated_again_with_a_further_scorer(run: Run) -> Evaluation:
    Evaluator().evaluate(run, {"any": anything})
    return Evaluator().evaluate(run, {"prediction": Prediction(), "any": anything})


def anything(output: str) -> bool:
    return True


def test_scores_that_are_taken_over_keep_the_fold_of_their_row(tmp_path: Path) -> None:
    again = evaluated_again_with_a_further_scorer(cross_validated(tmp_path))
    # Example 2 was given b in both repeats, in fold 1 of the first and in fold 0 of the second.
    assert rows(again, "any", "_index_", "replication", "fold") == IN_FOLDS


def test_scores_that_are_taken_over_are_counted_once_however_many_rows_are_alike(tmp_path: Path) -> None:
    again = evaluated_again_with_a_further_scorer(cross_validated(tmp_path))
    assert again.receipt
    assert (again.receipt.total, again.receipt.reused, again.receipt.called) == (16, 8, 8)


def test_several_labels_of_one_row_are_a_list() -> None:
    data = Dataset.from_rows([{"input": "apple", "expected": ["red", "round"]}])

    def label(text: str) -> list[str]:
        return ["round", "red"]

    def same_labels(output: list[str], expected: list[str]) -> bool:
        return set(output) == set(expected)

    scorers: dict[str, Any] = {"prediction": Prediction(type="json"), "same": same_labels}
    evaluation = Evaluator().evaluate(Runner().run(label, data), scorers)
    # As JSON text lists are equal only in the same order; as sets these two are equal.
    assert rows(evaluation, "prediction", *KEY, "truth", "prediction", "value") == [
        (0, 0, 0, None, '["red","round"]', '["round","red"]', 0.0)
    ]
    assert rows(evaluation, "same", *KEY, "value") == [(0, 0, 0, None, 1.0)]


# One question, three retrieved contexts, one grading call that fails

QUESTION = "Who wrote Emma?"
CONTEXTS = ["Emma is a novel by Jane Austen.", "", "Jane Austen was born in 1775."]
ASKED = Dataset.from_rows([{"input": QUESTION, "expected": "Jane Austen"}])
GRADES = {CONTEXTS[0]: 1.0, CONTEXTS[2]: 0.5}


def relevance(question: str, context: str) -> float:
    """Stands for a provider's call."""
    if not context:
        raise ConnectionError("the provider gave no answer")
    return GRADES[context]


def call(question: str, context: str) -> dict[str, Any]:
    arguments = {"question": question, "context": context}
    try:
        return {"arguments": arguments, "value": relevance(question, context)}
    except ConnectionError as error:
        return {"arguments": arguments, "error": str(error)}


def context_relevance(output: dict[str, Any], input: str) -> Score:
    calls = [call(input, context) for context in output["contexts"]]
    values = [made["value"] for made in calls if "value" in made]
    return Score(sum(values) / len(values), data={"calls": calls})


def test_one_failing_call_of_a_scorer_keeps_the_details_of_the_others() -> None:
    @task(version="1")
    def answer(question: str) -> dict[str, Any]:
        return {"answer": "Jane Austen", "contexts": CONTEXTS}

    evaluation = Evaluator().evaluate(Runner().run(answer, ASKED), {"relevance": context_relevance})
    [row] = evaluation.table("relevance").to_pylist()
    # (1 + 1/2) / 2: the call that failed is no zero.
    assert (row["status"], row["value"]) == ("scored", 0.75)
    calls = json.loads(row["data"])["calls"]
    assert [made["arguments"] for made in calls] == [{"question": QUESTION, "context": c} for c in CONTEXTS]
    assert [made.get("value") for made in calls] == [1.0, None, 0.5]
    assert calls[1]["error"] == "the provider gave no answer"


@pytest.mark.parametrize("error", [ValueError, ConnectionError])  # the second is worth another try, but there is none
def test_contexts_that_are_responses_are_graded_one_by_one_and_reduced_by_their_mean(error: type[Exception]) -> None:
    @task(version="1")
    def retrieve(question: str) -> Candidates:
        return Candidates(CONTEXTS)

    def of_context(output: str, input: str) -> float:
        if not output:
            raise error("nothing to grade")
        return relevance(input, output)

    evaluation = Evaluator().evaluate(Runner().run(retrieve, ASKED), {"relevance": of_context})
    assert rows(evaluation, "relevance", *KEY, "status", "value") == [
        (0, 0, 0, None, "scored", 1.0),
        (0, 0, 1, None, "failed", None),
        (0, 0, 2, None, "scored", 0.5),
    ]
    _, why, _ = evaluation.table("relevance")["reason"].to_pylist()
    assert why.startswith(f"scorer: {error.__name__}: nothing to grade (test_seed_rows.py:")
    assert why.endswith(" in of_context)")
    aggregation = Aggregator().aggregate([evaluation], [Measure("relevance", Mean(range=(0, 1), reduce="mean"))])
    [(value, worst, best, n, scored)] = found(aggregation, "value", "worst", "best", "n", "n_scored")
    # The question's value is (1 + 1/2) / 2; had the failed call given 0 or 1, it would be 1.5/3 or 2.5/3.
    assert (value, worst, best) == pytest.approx((0.75, 0.5, 2.5 / 3))
    assert (n, scored) == (1, 1)
