"""Templates of prompts: Jinja's syntax over the values of a row, rendered in a sandbox.

    Answer in one word: {{ question }}
    {% for choice in choices %}
    {{ loop.index }}. {{ choice }}
    {% endfor %}

A value that a row does not have, or that is null, is an error and never a hole in a prompt: `{{ note or "" }}` says
that it may be null, `{{ note | default("") }}` and `{% if note is defined %}` that it may be missing. Text is written
as it is, a list or an object as JSON. A line that holds nothing but a block leaves no blank line. Templates read no
files and no other templates, and cannot reach Python (`evaluand.core.text.template_sandbox`).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

from evaluand.core.errors import SpecError, alternatives

if TYPE_CHECKING:
    from evaluand.core.text.template_syntax import Syntax


class TemplateError(SpecError):
    """A template is wrong, or cannot be rendered with the values of a row."""


@dataclass(frozen=True)
class Template:
    """A text with places for values.

    Needs the extra `llm`: `pip install 'evaluand[llm]'`.

    Args:
        text: the template.
        name: where it is from, such as the path of its file; for messages.

    Raises:
        TemplateError: lists everything that is wrong with it.

    Example:
        >>> template = Template("Answer {{ question }} with {{ choices | join(' or ') }}.")
        >>> sorted(template.variables)
        ['choices', 'question']
        >>> template.render({"question": "Rain?", "choices": ["yes", "no"]})
        'Answer Rain? with yes or no.'
        >>> template.render({"question": "Rain?", "choices": None})
        Traceback (most recent call last):
        evaluand.core.text.templates.TemplateError: a value is null; write {{ VALUE or "" }} if it may be
    """

    text: str
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if faults := self._syntax.faults:
            raise TemplateError("\n".join(self._at(*fault) for fault in faults))

    @property
    def variables(self) -> frozenset[str]:
        """The names of all values that it may use."""
        return frozenset(self._syntax.variables)

    @property
    def required(self) -> frozenset[str]:
        """The names of the values that it cannot do without."""
        return self.variables - self._syntax.optional

    def faults(self, known: Sequence[str], advice: Mapping[str, str] | None = None) -> Iterator[str]:
        """What is wrong with it for rows with certain values.

        Args:
            known: the names of the values.
            advice: a name that is not known → what to do about it.

        Example:
            >>> for fault in Template("{{ qestion }} {context}").faults(["question", "context"]):
            ...     print(fault)
            there is no value 'qestion' (did you mean 'question'?); known: question, context
            {context} would be sent as it is; write {{ context }}
        """
        for name, line in self._syntax.variables.items():
            if name in self.required and name not in known:
                remedy = f"; {advice[name]}" if advice and name in advice else alternatives(name, known)
                yield self._at(line, f"there is no value {name!r}{remedy}")
        for line, name in self._syntax.braces:
            if name in known:
                yield self._at(line, f"{{{name}}} would be sent as it is; write {{{{ {name} }}}}")

    def render(self, values: Mapping[str, Any]) -> str:
        """The text with some values: data as JSON has it, dates and decimals.

        Raises:
            TemplateError: a value is missing or null, or the text would be too long.
        """
        sandbox = _import("sandbox")
        try:
            return sandbox.render(self._compiled, values)  # type: ignore[no-any-return]
        except Exception as error:
            frames = traceback.walk_tb(error.__traceback__)
            line = next((line for frame, line in frames if frame.f_code.co_filename == "<template>"), None)
            raise TemplateError(self._at(line, str(error) or type(error).__name__)) from None

    @cached_property
    def _syntax(self) -> Syntax:
        return _import("syntax").read_syntax(self.text)  # type: ignore[no-any-return]

    @cached_property
    def _compiled(self) -> Any:
        return _import("sandbox").SANDBOX.from_string(self.text)

    def _at(self, line: int | None, message: str) -> str:
        """A message with its place: file and line, or the line of a text that has several."""
        if self.name:
            return f"{self.name}:{line or 1}: {message}"
        return f"line {line} of the template: {message}" if line and "\n" in self.text.strip() else message


def _import(part: str) -> ModuleType:
    """A module that needs Jinja.

    Raises:
        SpecError: it is not installed.
    """
    import importlib

    try:
        return importlib.import_module(f"evaluand.core.text.template_{part}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("jinja2", "markupsafe"):
            raise SpecError("templates need Jinja2: pip install 'evaluand[llm]'") from None
        raise
