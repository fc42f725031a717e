"""Values of metrics for a model's repository on the Hugging Face Hub.

`.eval_results/PROBLEM.yaml` is what model pages and leaderboards show, one entry for each value. `model-index.yaml` has
the same as metadata of a model card, for what reads the older form; the card itself is not touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from evaluand._version import __version__
from evaluand.core.errors import SpecError
from evaluand.core.files.paths import replaced
from evaluand.core.identity import digest
from evaluand.exchange.exporter import Exporter, Result
from evaluand.report.facts.base import Facts


class HuggingFace(Exporter):
    """Evaluation results of a model on the Hub."""

    kind: ClassVar[str] = "huggingface"
    is_folder: ClassVar[bool] = True

    def write(self, result: Result, path: Path) -> list[Path]:
        if not result.numbers():
            raise SpecError("the Hub stores values of metrics, and this run has none; run it with metrics first")
        entries, index = path / ".eval_results" / f"{_file_name(result.problem)}.yaml", path / "model-index.yaml"
        others = _other_results(index, result)
        entries.parent.mkdir(parents=True, exist_ok=True)
        _write(entries, [*_entries(result)])
        _write(index, {"model-index": [{"name": result.system, "results": [*others, _result(result)]}]})
        if not _REPOSITORY.fullmatch(_dataset(result)):
            self.notes.append(f"{_dataset(result)!r} is no dataset on the Hub; write the id of one in {entries.name}")
        self.notes.append("task_id is the name of a metric; write that of the dataset's eval.yaml where it is another")
        self.notes.append("examples, answers and grades left out: the Hub stores values alone")
        self.notes += result.describe_left_out()
        return [entries, index]


_REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def _file_name(problem: str) -> str:
    """A problem's name if it can be that of a file; else one like it that no other problem has."""
    name = re.sub(r"[^\w-]+", "_", problem)[:100]
    return name if name == problem else f"{name}-{digest(problem).hex()[:8]}"


def _dataset(result: Result) -> str:
    return result.run.dataset.name or result.problem


def _other_results(index: Path, result: Result) -> list[Any]:
    """The results of other problems that an index has already.

    Raises:
        SpecError: the file is no index, or one of another model.
    """
    if not index.exists():
        return []
    try:
        [model] = yaml.safe_load(index.read_text(encoding="utf-8"))["model-index"]
        name, results = model["name"], [(each["dataset"]["name"], each) for each in model["results"]]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, LookupError, TypeError, ValueError):
        raise SpecError(f"{index} is no model index; export to another folder") from None
    if name != result.system:
        raise SpecError(f"{index} is that of {name}; export the results of {result.system} to another folder")
    return [each for problem, each in results if problem != result.problem]


def _write(path: Path, document: Any) -> None:
    with replaced(path) as file:
        file.write(yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=10_000).encode())


def _entries(result: Result) -> Iterator[Facts]:
    for name, row in result.numbers().items():
        yield {
            "dataset": {"id": _dataset(result), "task_id": name},
            "value": row["value"],
            "date": result.newest["sealed"],
            "notes": "; ".join(
                [*_about(row), f"dataset digest {result.run.dataset.digest}", f"evaluand {__version__}"]
            ),
        }


def _about(row: Facts) -> Iterator[str]:
    """What a reader must know of a value: how it was computed, from how many rows, and its interval."""
    yield f"{row['signature']}"
    yield f"{row['n_scored']} of {row['n']} rows scored"
    if row["low"] is not None and row["high"] is not None:
        yield f"interval {row['low']:.6g} to {row['high']:.6g}"


def _result(result: Result) -> Facts:
    """The values as a model card has them."""
    metrics = [{"type": row["metric"], "value": row["value"], "name": name} for name, row in result.numbers().items()]
    dataset = {"name": result.problem, "type": _dataset(result)}
    return {"task": {"type": "other"}, "dataset": dataset, "metrics": metrics}
