"""YAML that somebody else may have written: its depth and its size are limited while it is read.

A few lines of aliases stand for billions of values, and 100,000 brackets exceed the stack of Python.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import yaml

DEEPEST: Final = 50
MOST_VALUES: Final = 100_000
MOST_BYTES: Final = 4 << 20


class YAMLLimitError(yaml.MarkedYAMLError):
    """A document is too deep or too large, or refers to itself."""


class _Measure(NamedTuple):
    """What a node stands for: how many values, the levels below it, and the characters of its texts."""

    values: int
    levels: int
    characters: int


class BoundedLoader(yaml.SafeLoader):
    """A loader that refuses documents of more than `DEEPEST` levels, `MOST_VALUES` values or `MOST_BYTES` characters.

    An alias counts as often as it occurs, with all values and characters that it stands for.

    Raises:
        YAMLLimitError: the document exceeds a limit, or an alias refers to a value around it.

    Example:
        >>> yaml.load("[1, [2]]", BoundedLoader)
        [1, [2]]
        >>> yaml.load("&a [*a]", BoundedLoader)
        Traceback (most recent call last):
        evaluand.core.files.bounded_yaml.YAMLLimitError: refers to itself
          in "<unicode string>", line 1, column 5:
            &a [*a]
                ^
    """

    def __init__(self, stream: str | bytes) -> None:
        super().__init__(stream)
        self._level = 0
        self._composed = 0
        self._expanded: dict[int, _Measure] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Composes the next node with all nodes below it."""
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        is_alias = self.check_event(yaml.AliasEvent)
        self._composed += 1
        self._check(self._level, self._composed, mark)
        self._level += 1
        node = super().compose_node(parent, index)
        self._level -= 1
        if not is_alias:
            self._expanded[id(node)] = self._measure(node)
        elif id(node) not in self._expanded:
            raise YAMLLimitError(problem="refers to itself", problem_mark=mark)
        values, levels, characters = self._expanded[id(node)]
        self._check(self._level + levels, values, mark)
        if characters > MOST_BYTES:
            problem = f"has more than {MOST_BYTES:,} characters, with those that aliases stand for"
            raise YAMLLimitError(problem=problem, problem_mark=mark)
        return node

    def _measure(self, node: yaml.Node | None) -> _Measure:
        if isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        else:
            return _Measure(1, 0, len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        below = [self._expanded[id(child)] for child in children]
        levels = max((each.levels + 1 for each in below), default=0)
        return _Measure(1 + sum(each.values for each in below), levels, sum(each.characters for each in below))

    def _check(self, levels: int, values: int, mark: yaml.Mark | None) -> None:
        if levels > DEEPEST:
            raise YAMLLimitError(problem=f"is nested more than {DEEPEST} levels deep", problem_mark=mark)
        if values > MOST_VALUES:
            problem = f"has more than {MOST_VALUES:,} values, with those that aliases stand for"
            raise YAMLLimitError(problem=problem, problem_mark=mark)
