"""Score and solution files: confidences of models, and operating points, as JSON.

ScoreFile ── confidences ──▶ SolutionFile.a_posteriori ──▶ SolutionFile ── tradeoff ──▶ Tradeoff
└─ SolutionFile.a_priori, at the thresholds of an earlier solution
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.tradeoff.files.metrics import parse_metric as parse_metric, parse_metrics as parse_metrics
    from evaluand.tradeoff.files.scores import ScoreFile as ScoreFile
    from evaluand.tradeoff.files.solutions import SolutionFile as SolutionFile

__getattr__, __dir__ = lazy_names(__name__)
