"""Detected objects and segments in files of COCO."""

from pathlib import Path

from click import UsageError

from evaluand.cli.score.options import ScoreOptions
from evaluand.cli.score.output import check_output, write_scores
from evaluand.predictions.coco.scoring import score_coco
from evaluand.predictions.columns.notes import Notes


def score_objects(given: ScoreOptions, instances: Path) -> None:
    """Scores files of results, prints and stores the values.

    Raises:
        UsageError: no file of results is named.
        Exit: a gate failed.
    """
    if not given.files:
        raise UsageError(f"name the files of results: evaluand score --coco {instances} RESULTS...")
    check_output(given)
    name = given.name or instances.stem
    write_scores(
        lambda store: score_coco(
            instances,
            given.files,
            metrics=given.metrics,
            by=given.by,
            gates=given.gates,
            shape=given.shape,
            intervals=not given.no_intervals,
            groups=given.groups,
            notes=Notes(),
            store=None if given.name is None and given.report is None else store,
            name=name,
            origin={"files": [str(instances), *given.files]},
        ),
        given,
        name,
        flips=0,
    )
