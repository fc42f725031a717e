"""The types that a class declares: of a task its input and output, of a logic its example, output and result.

They stand in the annotations of its method, as text too (`from __future__ import annotations`), or in the brackets
behind its base class: `class Shout(Task[str, str])`.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from types import get_original_bases
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
