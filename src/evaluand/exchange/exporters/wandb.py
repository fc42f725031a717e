"""Offline runs of Weights & Biases, which `wandb sync` uploads, written by its own library.

The records of such a run are protobuf messages of its internal interface; so the extra `wandb` writes them. Nothing is
sent, and no account is needed.
"""

from __future__ import annotations

import re
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

from evaluand.exchange.exporter import Exporter, Result
from evaluand.exchange.exporters.optional import environment, need, table_of


class WandB(Exporter):
    """An offline run, with the configuration, a summary of the metrics, and a table of the samples."""

    kind: ClassVar[str] = "wandb"
    is_folder: ClassVar[bool] = True

    def write(self, result: Result, path: Path) -> list[Path]:
        with TemporaryDirectory() as scratch, environment(**_quiet(path, scratch)):
            wandb = need("wandb", "exporting to Weights & Biases")
            path.mkdir(parents=True, exist_ok=True)
            run = wandb.init(
                project=re.sub(r"[/\\#?%:\0]", "_", result.problem)[:_LONGEST],
                name=result.system,
                id=result.newest["id"],
                dir=str(path),
                config=result.facts(),
                settings=wandb.Settings(**_SETTINGS),
            )
            try:
                self._log_samples(wandb, run, result)
                run.summary.update(result.measured())
            finally:
                run.finish()
                wandb.teardown()
        self.notes += ["spans left out: such a run has no place for them"] * ("spans" in result.run.manifest["tables"])
        self.notes += result.describe_left_out()
        return [Path(run.dir).parent]

    def _log_samples(self, wandb: Any, run: Any, result: Result) -> None:
        """Logs the samples as tables of at most as many rows as one may have."""
        samples = result.samples()
        for number in count():
            columns = table_of(sample.row() for sample in islice(samples, _ROWS))
            if not columns:
                return
            rows = [[*row] for row in zip(*columns.values(), strict=True)]
            table = wandb.Table(columns=[*columns], data=rows, allow_mixed_types=True)
            run.log({f"samples_{number + 1}" if number else "samples": table})


_LONGEST: Final = 128
_ROWS: Final = 100_000
_SETTINGS: Final = {
    "mode": "offline",
    "console": "off",
    "silent": True,
    "disable_code": True,
    "disable_git": True,
    "disable_job_creation": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
}


def _quiet(path: Path, scratch: str) -> dict[str, str | None]:
    """The environment in which the library neither sends anything nor writes outside of a folder."""
    data = str((path / "wandb").resolve())
    return {
        "WANDB_MODE": "offline",
        "WANDB_API_KEY": None,
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_CACHE_DIR": scratch,
        "WANDB_CONFIG_DIR": scratch,
        "WANDB_DATA_DIR": data,
        "WANDB_ARTIFACT_DIR": data,
    }
