"""Selectors: a path into JSON-like data, such as `choices[0].message.content` or `$['a.b'].c`.

Compiled once into plain steps; nothing is executed from the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaluand.errors import DataError, SpecError, with_article
from evaluand.registry import nearest

_STEP = re.compile(
    r"""\.?(?P<name>[^.\[\]'"]+)|\[(?P<index>-?\d+)\]|\[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]""",
    re.DOTALL,
)


@dataclass(frozen=True)
class Selector:
    """A path to one value.

    Args:
        text: keys parted by dots, list places in brackets, awkward keys quoted in brackets; `$` may stand first.

    Raises:
        SpecError: the text is no path; says where it stops being one.

    Example:
        >>> Selector("a.b[1]").get({"a": {"b": [10, 20]}})
        20
    """

    text: str

    def __post_init__(self) -> None:
        _ = self.steps

    @cached_property
    def steps(self) -> tuple[str | int, ...]:
        """The keys and places, from the outside in."""
        place = 1 if self.text.startswith("$") and self.text[1:2] in ("", ".", "[") else 0
        steps: list[str | int] = []
        while place < len(self.text):
            found = _STEP.match(self.text, place)
            if not found or (steps and found["name"] is not None and self.text[place] != "."):
                raise SpecError(
                    f"{self.text!r} is no path at {self.text[place:]!r}; write it like a.b[0] or $['a.b'].c"
                )
            place = found.end()
            name, index, key = found["name"], found["index"], found["key"]
            steps.append(int(index) if index is not None else key if name is None else name)
        if not steps and not self.text.startswith("$"):
            raise SpecError("an empty path selects nothing; write $ for the whole")
        return tuple(steps)

    def get(self, value: Any) -> Any:
        """The value at the path.

        Raises:
            DataError: there is none; says how far the path goes and what is there instead.
        """
        for depth, step in enumerate(self.steps):
            by_key = isinstance(step, str) and isinstance(value, Mapping) and step in value
            by_place = isinstance(step, int) and _is_list(value) and -len(value) <= step < len(value)
            if not (by_key or by_place):
                raise DataError(self._missing(depth, value))
            value = value[step]
        return value

    def _missing(self, depth: int, value: Any) -> str:
        so_far = "".join(_printed(step) for step in self.steps[:depth])
        step = self.steps[depth]
        if isinstance(value, Mapping):
            there = f"has no {step!r}{nearest(str(step), [k for k in value if isinstance(k, str)])}"
        elif _is_list(value):
            there = f"is a list of {len(value)} without {step!r}"
        else:
            there = f"is {with_article(type(value).__name__)}, which has no {step!r}"
        return f"{self.text}: ${so_far} {there}"


def _printed(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if re.fullmatch(r"[^.\[\]'\"]+", step):
        return f".{step}"
    return f'["{step}"]' if "'" in step else f"['{step}']"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
