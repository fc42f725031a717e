"""What reads foreign input: each target takes the bytes of one input and an empty folder, and counts what it accepted.

A refusal is an `EvaluandError`, or an exception of click; anything else that is raised is a defect.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
from faults.fuzzing import store
from support import d3m_problem

from evaluand.cli.adapt import _read_pipeline as read_pipeline
from evaluand.cli.settings import find_settings
from evaluand.comparison.rule import Gate
from evaluand.core import secret_hosts
from evaluand.core.errors import DataError, SpecError
from evaluand.core.files.yaml import Document
from evaluand.core.selector import Selector
from evaluand.data.adapters.base.adapter import Counts
from evaluand.data.adapters.base.columns import read_rows as read_objects
from evaluand.data.dataset import Dataset
from evaluand.data.row_filter import RowFilter
from evaluand.data.schema.json_schema import read_json_schema
from evaluand.data.sources import open_file
from evaluand.evaluation.feedback.feedback import Feedback
from evaluand.experiment.build import measure
from evaluand.experiment.experiment import Experiment
from evaluand.experiment.spec import MetricSpec
from evaluand.interop.d3m.folder import open_folder
from evaluand.interop.d3m.problem import read_problem
from evaluand.judges.people.human_labels import read_labels
from evaluand.judges.rubric import Rubric
from evaluand.matches.battles import read_battles
from evaluand.matches.labelled_sets import read_labelled_file
from evaluand.metrics.base.signature import words_of
from evaluand.predictions.coco import score_coco
from evaluand.predictions.scoring import score
from evaluand.run.runner import Runner
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import MemoryStore
from evaluand.trace.foreign_spans import read_spans
from evaluand.tradeoff.files.scores import ScoreFile
from evaluand.tradeoff.files.solutions import SolutionFile

CORPUS: Final = Path(__file__).parents[1] / "corpus"
EXPERIMENT: Final = CORPUS.parent / "fuzzing" / "experiment"
SEPARATOR: Final = b"\n----\n"


@dataclass(frozen=True)
class Target:
    """Something that reads foreign input.

    Attributes:
        form: which changes suit its inputs; see `mutations.FORMS`.
        read: reads an input, with an empty folder at hand, and counts what it accepted.
        make: makes an input by chance, in place of changing one of the corpus.
        more: inputs that lie elsewhere.
        keeps_folder: whether it leaves the folder as it found it, so that it can be used again.
    """

    name: str
    form: str
    read: Callable[[bytes, Path], int]
    make: Callable[[Random], bytes] | None = None
    more: Callable[[], list[bytes]] = list
    keeps_folder: bool = False

    def files(self) -> list[Path]:
        """The files of the corpus: sound ones, and in the folder `found` those that once found a defect."""
        return sorted(path for path in (CORPUS / self.name).rglob("*") if path.is_file())

    def inputs(self) -> list[bytes]:
        """All inputs, the sound ones several times, because what reads them is seldom reached by the others."""
        found = [path.read_bytes() for path in self.files() if path.parent.name == "found"]
        sound = [path.read_bytes() for path in self.files() if path.parent.name != "found"] + self.more()
        return sound * max(1, 4 * len(found) // len(sound)) + found if sound else found


# Rows


def read_rows(kind: str) -> Callable[[bytes, Path], int]:
    """Reads a file of examples as a source and as a dataset."""

    def read(content: bytes, folder: Path) -> int:
        path = folder / f"input.{kind}"
        path.write_bytes(content)
        return count_rows(path)

    return read


def count_rows(path: Path) -> int:
    source = open_file(path)
    rows = sum(len(batch.to_pylist()) for batch in source.batches())
    if source.n_rows not in (None, rows):
        raise AssertionError(f"{rows} rows were read, but {source.n_rows} stated")
    if rows:
        source.where(rows - 1)
    if source.schema.names:
        dataset = Dataset.from_file(path, input=source.schema.names[0])
        examples = sum(1 for _ in dataset)
        if examples != rows:
            raise AssertionError(f"{examples} examples of {rows} rows")
    return rows


def describe_rows(name: str) -> Callable[[bytes, Path], int]:
    """Reads a description of a file of people."""

    def read(content: bytes, folder: Path) -> int:
        (folder / "people.csv").write_bytes((EXPERIMENT / "people.csv").read_bytes())
        path = folder / name
        path.write_bytes(content)
        return count_rows(path)

    return read


def make_json_lines(random: Random) -> bytes:
    """JSON lines of which some are broken."""
    broken = ["", "not json", '{"a": 1', "[1, 2]", "7", "null", '"text"', '{"a": 1}}', "{'a': 1}", '{"a": }']
    rows = [json.dumps({"a": number, "b": "x" * random.randrange(5)}) for number in range(random.randrange(1, 60))]
    for _ in range(random.choice([0, 1, 2, 30])):
        rows[random.randrange(len(rows))] = random.choice(broken)
    return "\n".join(rows).encode()


def check_json_lines(content: bytes, folder: Path) -> int:
    lines = content.decode().split("\n")
    filled = [number for number, line in enumerate(lines, 1) if line.strip()]
    broken = [range(number, number + 1) for number in filled if not is_object(lines[number - 1])]
    return check_counts(content, folder / "input.jsonl", len(filled), broken)


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def make_cells(random: Random) -> bytes:
    """CSV of which some rows have too many cells or too few."""
    rows = [
        [str(n), random.choice(["x", "a,b", 'a"b', "two\nlines", ""]), "1.5"] for n in range(random.randrange(1, 60))
    ]
    for _ in range(random.choice([0, 1, 2, 30])):
        number = random.randrange(len(rows))
        rows[number] = random.choice([rows[number][:2], [*rows[number], "more"], [*rows[number], "", ""]])
    text = io.StringIO()
    csv.writer(text, lineterminator=random.choice(["\n", "\r\n"])).writerows([["a", "b", "c"], *rows])
    return text.getvalue().encode()


def check_cells(content: bytes, folder: Path) -> int:
    reader = csv.reader(io.StringIO(content.decode(), newline=""))
    start, filled, broken = 0, 0, list[range]()
    for row in reader:
        if row and start:
            filled += 1
            broken += [range(start + 1, reader.line_num + 1)] if len(row) != 3 else []
        start = reader.line_num
    return check_counts(content, folder / "input.csv", filled, broken)


def check_counts(content: bytes, path: Path, filled: int, broken: Sequence[range]) -> int:
    """Requires that exactly the broken rows are named, by one of their lines, or counted; else that all are read."""
    path.write_bytes(content)
    try:
        source = open_file(path)
        rows = sum(batch.num_rows for batch in source.batches())
    except DataError as error:
        named = [int(found[1]) for fault in error.faults if (found := re.search(rf"{path.name}:(\d+)", fault.where))]
        more = [int(found[1]) for fault in error.faults if (found := re.search(r"… and (\d+) more", fault.message))]
        is_named = all(line in row for line, row in zip(named, broken, strict=False))
        if not is_named or len(named) + sum(more) != len(broken):
            raise AssertionError(f"broken are the lines {broken}, but named {named} and {more} more") from error
        raise
    if broken or rows != filled:
        raise AssertionError(f"{rows} rows were read of {filled}, of which {len(broken)} are broken")
    return rows


# Experiments and documents


def load_experiment(content: bytes, folder: Path) -> int:
    shutil.copytree(EXPERIMENT, folder, dirs_exist_ok=True)
    (folder / "code.py.txt").rename(folder / "code.py")
    (folder / "experiment.yaml").write_bytes(content)
    return len(Experiment.from_file(folder / "experiment.yaml").dataset)


def read_rubric(content: bytes, folder: Path) -> int:
    (folder / "mine.yaml").write_bytes(content)
    rubric = Rubric.of(str(folder / "mine.yaml"))
    return len(rubric.digest) // 32


def read_feedback(content: bytes, folder: Path) -> int:
    feedback = Feedback.from_json(parse_json(content))
    feedback.evaluate({"input": "a question", "output": "an answer", "expected": "an answer"})
    return 1


def parse_json(content: bytes) -> Any:
    """A value of JSON; what is none is not given to a target that takes values."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise SpecError("not JSON") from None


def read_schema(content: bytes, folder: Path) -> int:
    schema = parse_json(content)
    if not isinstance(schema, dict):
        raise SpecError("no object")
    read_json_schema(schema)
    return 1


def read_settings(content: bytes, folder: Path) -> int:
    (folder / "evaluand.toml").write_bytes(content)
    return int(find_settings(folder) is not None)


def read_secret_hosts(content: bytes, folder: Path) -> int:
    """Reads the user's settings, which a campaign has in a folder of its own."""
    path = secret_hosts.settings_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return len(secret_hosts.read_settings())


# COCO


def score_instances(content: bytes, folder: Path) -> int:
    return score_boxes(folder, content, (EXPERIMENT / "detections.json").read_bytes())


def score_detections(content: bytes, folder: Path) -> int:
    return score_boxes(folder, (EXPERIMENT / "instances.json").read_bytes(), content)


def score_boxes(folder: Path, instances: bytes, detections: bytes) -> int:
    (folder / "instances.json").write_bytes(instances)
    (folder / "detections.json").write_bytes(detections)
    scores = score_coco(folder / "instances.json", folder / "detections.json", intervals=False)
    return len(scores.systems)


# Problems


def in_problem(*places: str) -> Callable[[bytes, Path], int]:
    """Opens the folder of a problem of which one file is replaced."""

    def read(content: bytes, folder: Path) -> int:
        root = d3m_problem.Made(folder / "problem").write()
        root.joinpath(*places).write_bytes(content)
        opened = open_folder(root)
        return len(opened.table())

    return read


def read_problem_document(content: bytes, folder: Path) -> int:
    (folder / "problemDoc.json").write_bytes(content)
    return len(read_problem(folder / "problemDoc.json").criteria)


def score_predictions(content: bytes, folder: Path) -> int:
    """Scores predictions of which truth or predictions, or both, come from outside."""
    problem = (EXPERIMENT / "problemDoc.json").read_bytes()
    truth, _, predictions = content.partition(SEPARATOR)
    for name, text in (("problemDoc.json", problem), ("truth.csv", truth), ("predictions.csv", predictions)):
        (folder / name).write_bytes(text)
    return len(
        score(folder / "problemDoc.json", folder / "predictions.csv", folder / "truth.csv", intervals=False).rows
    )


# Texts


VALUE: Final[dict[str, Any]] = {
    "input": {"question": "a", "items": [{"id": 1, "text": "x"}, {"id": 2, "text": "y", "more": [1, [2, {"a": 3}]]}]},
    "output": [0, 1.5, None, True, "text", {"a": {"b": {"c": "d"}}}],
}
BATCH: Final = pa.RecordBatch.from_pylist(
    [
        {"sex": "F", "age": 31, "height": 1.5, "ok": True, "tags": ["a", "b"], "more": {"a": 1}},
        {"sex": None, "age": None, "height": None, "ok": None, "tags": None, "more": None},
        {"sex": "M", "age": -1, "height": 0.0, "ok": False, "tags": [], "more": {"a": None}},
    ]
)


def as_text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass") if is_text(content) else content.decode("latin-1")


def is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def find_selector(content: bytes, folder: Path) -> int:
    text = as_text(content)
    found = 0
    for read in (Selector, Selector.jsonpath):
        try:
            selector = read(text)
        except SpecError:
            continue
        found += len(selector.find(VALUE)) + len(selector.paths(VALUE))
        if read(str(selector)) != selector and read is Selector:
            raise AssertionError(f"{str(selector)!r} is another selector")
    return found


def filter_rows(content: bytes, folder: Path) -> int:
    mask = RowFilter(as_text(content)).mask(BATCH)
    if len(mask) != BATCH.num_rows:
        raise AssertionError(f"{len(mask)} rows match or do not, of {BATCH.num_rows}")
    return 1


def read_gate(content: bytes, folder: Path) -> int:
    gate = Gate.parse(as_text(content))
    gate.at_any_time()
    return len(gate.limit) and 1


def read_metric(content: bytes, folder: Path) -> int:
    """Makes the metric of a name, which parameters may follow as in an experiment file."""
    name, brace, rest = as_text(content).partition(" {")
    (folder / "metric.yaml").write_text(
        f"kind: {json.dumps(name)}\nparameters: {brace + rest or 'null'}", errors="replace"
    )
    document = Document(folder / "metric.yaml")
    with document.at():
        spec = MetricSpec.model_validate({"kind": name, **as_mapping(document.value.get("parameters"))})
        metric = measure(spec, ["any"], folder).metric
    document.check()
    return len(words_of(metric.signature)) + 1


def as_mapping(value: Any) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key != "kind"} if isinstance(value, dict) else {}


def adapt_rows(content: bytes, folder: Path) -> int:
    (folder / "pipeline.yaml").write_bytes(content)
    pipeline, counts = read_pipeline(folder / "pipeline.yaml"), Counts()
    source = open_file(EXPERIMENT / "rows.jsonl")
    list(itertools.islice(pipeline(row for batch in source.batches() for row in read_objects(batch)), 1000))
    return len(pipeline.table(source.batches(), counts))


# Results of other systems


def import_battles(kind: str) -> Callable[[bytes, Path], int]:
    def read(content: bytes, folder: Path) -> int:
        (folder / f"battles.{kind}").write_bytes(content)
        columns = {"a": "a", "b": "b", "winner": "winner"} if kind == "csv" else None
        return sum(read_battles(folder / f"battles.{kind}", columns=columns).counts.values())

    return read


def import_predictions(content: bytes, folder: Path) -> int:
    (folder / "predictions.csv").write_bytes(content)
    dataset = Dataset.from_file(EXPERIMENT / "data.csv", input="text", id="id")
    response = {"prediction": "prediction", "confidence": "confidence"}
    task = RecordedTask(path=str(folder / "predictions.csv"), response=response, by="id", key="id")
    run = Runner(MemoryStore()).run(task, dataset, replications=task.outputs.repeats)
    if sum(run.counts.values()) != len(dataset) * task.outputs.repeats:
        raise AssertionError(f"{run.counts} of {len(dataset)} examples, {task.outputs.repeats} times")
    return run.counts.get("completed", 0)


def import_spans(content: bytes, folder: Path) -> int:
    (folder / "spans.jsonl").write_bytes(content)
    return len(read_spans(folder / "spans.jsonl"))


def import_labels(content: bytes, folder: Path) -> int:
    (folder / "labels.csv").write_bytes(content)
    return len(read_labels([folder / "labels.csv"]).labels)


def import_labelled(content: bytes, folder: Path) -> int:
    (folder / "judged.jsonl").write_bytes(content)
    return len(read_labelled_file(folder / "judged.jsonl", "mine").items)


def load_solutions(content: bytes, folder: Path) -> int:
    (folder / "solutions.json").write_bytes(content)
    return len(SolutionFile.load(folder / "solutions.json").front().points)


def load_scores(content: bytes, folder: Path) -> int:
    (folder / "scores.json").write_bytes(content)
    return bool(ScoreFile.load(folder / "scores.json")) + 0


TARGETS: Final = {
    target.name: target
    for target in (
        Target("experiment", "yaml", load_experiment),
        Target("csv", "cells", read_rows("csv")),
        Target("tsv", "cells", read_rows("tsv")),
        Target("jsonl", "lines", read_rows("jsonl")),
        Target("json", "json", read_rows("json")),
        Target("parquet", "binary", read_rows("parquet")),
        Target("arrow", "binary", read_rows("arrow")),
        Target("arff", "text", read_rows("arff")),
        Target("xlsx", "binary", read_rows("xlsx")),
        Target("broken_jsonl", "lines", check_json_lines, make_json_lines),
        Target("broken_csv", "cells", check_cells, make_cells),
        Target("croissant", "json", describe_rows("croissant.json")),
        Target("datapackage", "json", describe_rows("datapackage.json")),
        Target("coco_instances", "json", score_instances),
        Target("coco_detections", "json", score_detections),
        Target("problem", "json", read_problem_document),
        Target("problem_folder", "json", in_problem("p_problem", "problemDoc.json")),
        Target("dataset_document", "json", in_problem("p_dataset", "datasetDoc.json")),
        Target("solutions_csv", "cells", in_problem("p_dataset", "tables", "learningData.csv")),
        Target("splits_csv", "cells", in_problem("p_problem", "dataSplits.csv")),
        Target("predictions_csv", "cells", score_predictions),
        Target("feedback", "json", read_feedback),
        Target("rubric", "yaml", read_rubric),
        Target("json_schema", "json", read_schema),
        Target("settings", "text", read_settings),
        Target("secret_hosts", "yaml", read_secret_hosts),
        Target("selector", "text", find_selector),
        Target("filter", "text", filter_rows),
        Target("gate", "text", read_gate),
        Target("metric", "text", read_metric),
        Target("adapters", "yaml", adapt_rows),
        Target("store", "store", store.read_damaged, more=store.list_inputs, keeps_folder=True),
        Target("battles_jsonl", "lines", import_battles("jsonl")),
        Target("battles_csv", "cells", import_battles("csv")),
        Target("predictions", "cells", import_predictions),
        Target("spans", "lines", import_spans),
        Target("labels", "cells", import_labels),
        Target("labelled", "lines", import_labelled),
        Target("solution_file", "json", load_solutions),
        Target("score_file", "json", load_scores),
    )
}
