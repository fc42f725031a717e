"""Leaderboards: the results of feedbacks for several versions of apps, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.apps.leaderboards.board import (
        LEADERBOARD as LEADERBOARD,
        Leaderboard as Leaderboard,
        add_evaluations as add_evaluations,
        collect_sources as collect_sources,
        leaderboard as leaderboard,
    )
    from evaluand.apps.leaderboards.versions import version_label as version_label

__getattr__, __dir__ = lazy_names(__name__)
