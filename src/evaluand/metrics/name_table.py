"""The table of the names of metrics: everyday names, those of scikit-learn and those of D3M, in `names.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

FUNCTION: Final = "function"
"""The kind of metrics that are functions of the user, which name them."""

BINARY: Final = "binary"
"""The value of `average` that stands for one class, which the truths must imply."""


@dataclass(frozen=True)
class MetricName:
    """A metric with a name.

    Attributes:
        name: the name under which it is printed.
        kind: the registered kind.
        about: what it is, in a few words, which suggestions search too.
        parameters: of the kind, by which this metric differs from the kind's defaults.
        aliases: further names: everyday ones, those of scikit-learn and those of D3M.
    """

    name: str
    kind: str
    about: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


AVERAGES: Final = {"micro": "micro", "macro": "macro", "weighted": "weighted", "samples": "example"}
"""The end of a name → the value of the parameter `average`."""

_ZERO: Final = {"zero_division": 0.0}


class OneClass(NamedTuple):
    """A metric of one class, whose name with an ending is an average over classes or rows.

    `zero` lists the endings under which scikit-learn counts an undefined ratio of a class or row as 0.
    """

    name: str
    kind: str
    about: str
    aliases: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = {}


def averaged_parameters(base: OneClass, suffix: str) -> dict[str, Any]:
    zero = _ZERO if suffix in base.zero else {}
    return {**base.parameters, "average": AVERAGES[suffix], **zero}


def _averaged_names(base: OneClass) -> Iterator[MetricName]:
    binary = {**base.parameters, "average": BINARY}
    yield MetricName(base.name, base.kind, base.about, binary, (*base.aliases, f"{base.name}_binary"))
    for suffix in AVERAGES:
        aliases = tuple(f"{alias}_{suffix}" for alias in base.aliases)
        words = "mean over rows" if suffix == "samples" else f"{suffix} average over classes"
        yield MetricName(
            f"{base.name}_{suffix}", base.kind, f"{base.about}, {words}", averaged_parameters(base, suffix), aliases
        )


@cache
def table() -> tuple[MetricName, ...]:
    """Every metric with a name."""
    others = (MetricName(**_with_tuples(entry)) for entry in _read()["others"])
    return (*(name for base in averaged() for name in _averaged_names(base)), *others)


@cache
def averaged() -> tuple[OneClass, ...]:
    """The metrics of one class."""
    return tuple(OneClass(**_with_tuples(entry)) for entry in _read()["averaged"])


@cache
def kinds_at_k() -> Mapping[str, str]:
    """What stands before `@` and a number → kind with the parameter k."""
    kinds: dict[str, str] = _read()["at_k"]
    return kinds


def _read() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(Path(__file__).with_name("names.json").read_bytes())
    return found


def _with_tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
