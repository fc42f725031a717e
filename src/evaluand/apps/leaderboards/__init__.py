"""Leaderboards: the results of feedbacks for several versions of apps, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.apps.leaderboards.board import LEADERBOARD as LEADERBOARD
    from evaluand.apps.leaderboards.board import Leaderboard as Leaderboard
    from evaluand.apps.leaderboards.board import leaderboard as leaderboard
    from evaluand.apps.leaderboards.collect import add_evaluations as add_evaluations
    from evaluand.apps.leaderboards.collect import collect_sources as collect_sources
    from evaluand.apps.leaderboards.versions import version_label as version_label

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "board": ("LEADERBOARD", "Leaderboard", "leaderboard"),
        "collect": ("add_evaluations", "collect_sources"),
        "versions": ("version_label",),
    },
)
