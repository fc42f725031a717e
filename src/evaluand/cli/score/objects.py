"""Detected objects and segments in files of COCO and LVIS."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from click import UsageError

from evaluand.cli.score.output import Output, check_output, write_scores
from evaluand.predictions.coco.scoring import score_coco

SHAPES: Final = ("boxes", "masks", "semantic")


@dataclass(frozen=True, kw_only=True)
class ObjectFiles:
    """Files of objects to score, and where to write the results."""

    instances: Path
    files: tuple[str, ...]
    metrics: tuple[str, ...]
    by: tuple[str, ...]
    gates: tuple[str, ...]
    shape: str | None
    intervals: bool
    output: Output


def score_objects(given: ObjectFiles) -> None:
    """Scores files of results, prints and stores the values.

    Raises:
        UsageError: no file of results is named.
        Exit: a gate failed.
    """
    if not given.files:
        raise UsageError(f"name the files of results: evaluand score --coco {given.instances} RESULTS...")
    check_output(given.output, given.gates)
    name = given.output.name or given.instances.stem
    write_scores(
        lambda store: score_coco(
            given.instances,
            given.files,
            metrics=given.metrics,
            by=given.by,
            gates=given.gates,
            shape=given.shape,
            intervals=given.intervals,
            store=store,
            name=name,
            origin={"files": [str(given.instances), *given.files]},
        ),
        given.output,
        name,
        flips=0,
    )
