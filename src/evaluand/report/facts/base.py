"""The type of facts: plain, JSON-like data."""

from __future__ import annotations

from typing import Any

Facts = dict[str, Any]
