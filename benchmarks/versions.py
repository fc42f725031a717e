"""What became dearer since the last version: this checkout and that one, measured in turn.

    python benchmarks/versions.py                      # with the last version that has a tag, or else its first commit
    python benchmarks/versions.py --against COMMIT     # with another one
    python benchmarks/versions.py --quick              # small sizes, four turns: as `make bench` does
    python benchmarks/versions.py --only path,start

Both run in one environment, with one or the other package on the path, in processes of their own. A turn measures both,
in changing order, so that whatever else the machine does falls on both. What is printed is CPU time of all threads and
children, or memory; the ratio is the median of the ratios of the turns, and the smallest figure of each is beside it. A
busy machine hardly changes the smallest. What became more than 5 % dearer is listed at the end, and nothing fails.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from children import clean_environment, measured, run, say

HERE = Path(__file__).resolve().parent
DEARER = 1.05
THIS, EARLIER = "this", "earlier"
MIB = 1 << 20

EXPERIMENT = """
name: small
dataset: {path: rows.jsonl, input: text, expected: answer}
tasks: {one: {function: "tasks:one"}, two: {function: "tasks:two"}}
scorers: {exact: exact_match, overlap: rouge}
metrics: [{kind: mean, scorer: exact}, {kind: mean, scorer: overlap}]
"""
TASKS = """
def one(text: str) -> str:
    return text.title()

def two(text: str) -> str:
    return text if len(text) % 3 else text.title()
"""


@dataclass(frozen=True)
class Sizes:
    """How much is measured, and how often."""

    examples: int
    scored: int
    adapted: int
    boxes: int
    turns: int


FULL, QUICK = Sizes(20_000, 200_000, 20_000, 300, 12), Sizes(4_000, 20_000, 4_096, 40, 4)

Figures = dict[str, float]
"""What was measured → seconds, or MiB where the name ends so."""


class Version:
    """One of the two: its code, and a folder for what it makes."""

    def __init__(self, name: str, source: Path, folder: Path, sizes: Sizes) -> None:
        self.name, self.source, self.folder, self.sizes = name, source, folder / name, sizes
        self.data = folder / "data"
        self.folder.mkdir()

    def path(self) -> Iterator[tuple[str, float]]:
        """The path over short texts, step by step, and its peak of memory."""
        figures = self._measure(measure="path", file=self._examples, folder=self._new_folder(), mode="async")
        for step, seconds in figures["cpu_of"].items():
            yield f"path: {step}", seconds
        yield "path: peak memory, MiB", figures["memory"] / MIB
        figures = self._measure(measure="path", file=self._examples, folder=self._new_folder(), mode="threads")
        yield "path: run in threads", figures["cpu_of"]["run"]
        figures = self._measure(measure="waits", file=self._examples, folder=self._new_folder(), in_flight=256)
        yield "path: run of 1 ms calls, 256 in flight, clock", figures["wall_of"]["run"]

    def evaluation(self) -> Iterator[tuple[str, float]]:
        """Many cheap scorers."""
        figures = self._measure(measure="scorers", file=self._few, folder=self._new_folder(), scorers=64)
        yield "evaluation by 64 scorers", figures["cpu_of"]["evaluate"]

    def score(self) -> Iterator[tuple[str, float]]:
        """Predictions in files: classes, numbers (R²), boxes at all thresholds."""
        columns = ["--truth", "truth", "--prediction", "prediction"]
        yield from self._command("score, classes", "score", self.data / "classes.csv", *columns)
        numbers = [self.data / "numbers.csv", *columns, "--metric", "r2"]
        yield from self._command("score, R²", "score", *numbers)
        yield from self._command("score, 1,000 rows", "score", self.data / "few.csv", *columns)
        yield from self._command("score, COCO", "score", self.data / "found.json", "--coco", self.data / "boxes.json")

    def adapters(self) -> Iterator[tuple[str, float]]:
        """All adapters together, and those with patterns."""
        command = [sys.executable, str(HERE / "adapters.py"), "--measure", "--rows", str(self.sizes.adapted)]
        times = run(command, self._environment)["times"]
        yield "adapters, 10,000 rows", 10_000 * sum(map(min, times.values()))

    def start(self) -> Iterator[tuple[str, float]]:
        """Commands on a small project: a first run, nothing to do, and what only reads."""
        project = Path(self._new_folder())
        (project / "experiment.yaml").write_text(EXPERIMENT)
        (project / "tasks.py").write_text(TASKS)
        (project / "rows.jsonl").write_bytes((self.data / "rows.jsonl").read_bytes())
        for name, *arguments in (
            ("--version", "--version"),
            ("validate", "validate", "experiment.yaml"),
            ("first run", "run", "experiment.yaml"),
            ("nothing to do", "run", "experiment.yaml"),
            ("list", "list"),
            ("show", "show", "small/one"),
            ("compare", "compare", "small/one", "small/two"),
            ("verify", "verify"),
        ):
            yield from self._command(f"command: {name}", *arguments, folder=project, with_memory=name == "show")

    @property
    def _examples(self) -> str:
        return self._written("examples", self.sizes.examples)

    @property
    def _few(self) -> str:
        return self._written("few-examples", self.sizes.examples // 10)

    def _written(self, name: str, n: int) -> str:
        file = self.data / f"{name}.parquet"
        if not file.exists():
            self._measure(measure="examples", file=str(file), n=n)
        return str(file)

    def _measure(self, **request: Any) -> dict[str, Any]:
        return run([sys.executable, str(HERE / "ours.py"), json.dumps(request)], self._environment)

    def _command(
        self, name: str, *arguments: Any, folder: Path | None = None, with_memory: bool = False
    ) -> Iterator[tuple[str, float]]:
        """The CPU time of a command."""
        start = [sys.executable, "-c", "from evaluand.cli import main; main()", *map(str, arguments)]
        seconds, memory = measured(start, self._environment, folder or self.folder)
        yield name, seconds
        if with_memory:
            yield f"{name}: peak memory, MiB", memory / MIB

    @property
    def _environment(self) -> dict[str, str]:
        return clean_environment() | {"PYTHONPATH": str(self.source)}

    def _new_folder(self) -> str:
        return tempfile.mkdtemp(dir=self.folder)


ROADS: dict[str, Callable[[Version], Iterator[tuple[str, float]]]] = {
    "path": Version.path,
    "evaluation": Version.evaluation,
    "score": Version.score,
    "adapters": Version.adapters,
    "start": Version.start,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="COMMIT", default=None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[*ROADS], metavar="NAME,…")
    options = parser.parse_args()
    if unknown := set(options.only) - ROADS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(ROADS)}")
    sizes = QUICK if options.quick else FULL
    commit = options.against or _last_version()
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as name:
        folder = Path(name)
        _write_data(folder / "data", sizes)
        versions = [
            Version(THIS, HERE.parent / "src", folder, sizes),
            Version(EARLIER, _unpack(commit, folder / "unpacked"), folder, sizes),
        ]
        turns = [_turn(versions, options.only, number) for number in range(options.turns or sizes.turns)]
    _print(turns, commit)


def _last_version() -> str:
    """The last tag, or where there is none the commit that gave the version its number."""
    described = _git("describe", "--tags", "--abbrev=0", "HEAD^")
    return described or _git("log", "-1", "--format=%h", "--", "src/evaluand/_version.py")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(HERE.parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _unpack(commit: str, folder: Path) -> Path:
    """The package of a commit as it would be installed, with its entry points."""
    command = ["git", "-C", str(HERE.parent), "archive", commit, "src", "pyproject.toml"]
    archive = subprocess.run(command, capture_output=True, check=False)
    if archive.returncode:
        sys.exit(f"{commit}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as sources:
        sources.extractall(folder, filter="data")
    described = folder / "src" / "evaluand-0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: evaluand\nVersion: 0\n")
    groups = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [line for group, names in groups.items() for line in (f"[{group}]", *map(" = ".join, names.items()))]
    (described / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder / "src"


def _turn(versions: list[Version], roads: list[str], number: int) -> dict[str, Figures]:
    say(f"turn {number + 1}")
    figures: dict[str, Figures] = {version.name: {} for version in versions}
    for road in roads:
        for version in versions[:: -1 if number % 2 else 1]:
            try:
                for name, figure in ROADS[road](version):
                    figures[version.name][name] = figure
            except RuntimeError as error:
                say(f"{road} of {version.name} ends early: {str(error)[-500:]}")
    return figures


def _write_data(folder: Path, sizes: Sizes) -> None:
    folder.mkdir()
    chance = random.Random(0)
    for name, n in (("classes", sizes.scored), ("few", 1_000)):
        pairs = ((chance.randrange(10), chance.randrange(10)) for _ in range(n))
        _write_csv(folder / f"{name}.csv", ((f"c{a}", f"c{a if chance.random() < 0.7 else b}") for a, b in pairs))
    numbers = (chance.gauss(0, 1) for _ in range(sizes.scored))
    _write_csv(folder / "numbers.csv", ((f"{x:.6f}", f"{x + chance.gauss(0, 0.1):.6f}") for x in numbers))
    words = (" ".join(chance.choice(("red", "blue", "green")) for _ in range(4)) for _ in range(200))
    lines = [json.dumps({"text": f"{text} {n}", "answer": f"{text} {n}".title()}) for n, text in enumerate(words)]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
    boxes = [
        {"id": n + 1, "image_id": n // 10, "category_id": 1 + n % 5, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
        for n, box in enumerate([chance.randrange(400), chance.randrange(400), 60, 80] for _ in range(sizes.boxes * 10))
    ]
    images = [{"id": n, "width": 640, "height": 640} for n in range(sizes.boxes)]
    classes = [{"id": n, "name": f"class {n}"} for n in range(1, 6)]
    (folder / "boxes.json").write_text(json.dumps({"images": images, "categories": classes, "annotations": boxes}))
    found = [
        {"image_id": box["image_id"], "category_id": box["category_id"], "score": round(chance.random(), 4)}
        | {"bbox": [side + chance.randrange(-9, 10) for side in box["bbox"]]}
        for box in boxes
        for _ in range(3)
    ]
    (folder / "found.json").write_text(json.dumps(found))


def _write_csv(file: Path, rows: Iterator[tuple[str, str]]) -> None:
    file.write_text("\n".join(["truth,prediction", *map(",".join, rows)]) + "\n")


def _print(turns: list[dict[str, Figures]], commit: str) -> None:
    print(f"CPU time in seconds beside {commit}, in {len(turns)} turns\n")
    print(f"{'':<48}{'smallest':>9}{'earlier':>9}{'median of ratios':>18}")
    dearer = []
    for name in {name: None for turn in turns for name in turn[THIS]}:
        ours, theirs = ([turn[who][name] for turn in turns if name in turn[who]] for who in (THIS, EARLIER))
        if not theirs:
            print(f"{name:<48}{min(ours):>9.3f}{'-':>9}")
            continue
        pairs = [
            (turn[THIS][name], turn[EARLIER][name]) for turn in turns if name in turn[THIS] and name in turn[EARLIER]
        ]
        ratio = statistics.median(this / earlier for this, earlier in pairs)
        print(f"{name:<48}{min(ours):>9.3f}{min(theirs):>9.3f}{ratio:>18.3f}")
        dearer += [f"{name}: {ratio:.2f} ×"] if min(ratio, min(ours) / min(theirs)) > DEARER else []
    print("\nmore than 5 % dearer: " + ("; ".join(dearer) or "nothing"))


if __name__ == "__main__":
    main()
