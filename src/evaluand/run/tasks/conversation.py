"""Conversations with a model: templates of messages, filled with the values of a row.

    system ─ examples, each asked and answered ─ earlier turns of the row ─ what is asked

Templates see the row's input: its columns by name, and all of it as `input`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from evaluand.core import identity
from evaluand.core.errors import DataError, ParameterError, SpecError, TaskError, alternatives, kind_of, plural
from evaluand.core.files.regular import read_regular_file
from evaluand.core.parameters import Within
from evaluand.core.text.templates import Template, TemplateError
from evaluand.data.dataset import Dataset
from evaluand.models.messages import read_messages
from evaluand.run.parameters import Place, check_parameters

FILE: Final = "file:"
"""How a prompt begins that is in a file."""

INPUT: Final = "input"
"""The name of the whole input in templates."""

EXAMPLES: Final = "examples"
"""The name of the examples in templates."""

IMAGES: Final = "images"
"""The parameter with the names of the values that are images."""

ROLES: Final = ("system", "developer", "user", "assistant")
_ADDRESSES: Final = ("data:", "https://", "http://")
_IMAGES_IN_ROWS: Final = "a row holds an image as bytes or a data URL, or names its address"
_LEADING: Final = ("system", "developer")
_LONGEST_PROMPT: Final = 8_000_000  # bytes of a file
_LOOKED_AT: Final = 100  # inputs whose keys count as known


class MessageTemplate(NamedTuple):
    """A message with places for values.

    Attributes:
        role: who speaks: one of `ROLES`.
        content: what is said.
        place: where it is among the parameters of the task.
    """

    role: str
    content: Template
    place: Place

    def fill(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {"role": self.role, "content": self.content.render(values)}


@dataclass(frozen=True)
class FewShot:
    """Answered examples that a model sees before it is asked.

    Each is asked as a row is, and followed by its answer. A template that uses `examples` writes them itself: a list of
    objects, with their columns and `input`.

    Args:
        path: the file of the examples; any format of datasets.
        input: the column or columns that templates see; as for datasets.
        expected: the column with the answer.
        n: how many; all by default.
        seed: draws `n` of them by this number; without it, the first are taken.
        where: only rows that match a condition, as for datasets; such as those of another split.
        per_row: draws `n` for each row, so that the file may be that of the dataset: examples that ask the same as the
            row are passed over, and others take their place. Otherwise all rows see the same, without such examples.

    Raises:
        ParameterError: lists all invalid parameters.
    """

    path: str
    _: KW_ONLY
    expected: str = "expected"
    input: str | Sequence[str] | Mapping[str, str] | None = None
    n: Annotated[int, Within(1)] | None = None
    seed: int | None = None
    where: str | None = None
    per_row: bool = False

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    def __post_init__(self) -> None:
        faults: list[tuple[Place, str]] = []
        if self.seed is not None and self.n is None:
            faults.append((("seed",), "draws some of the examples; give n too"))
        if self.per_row and self.seed is None:
            faults.append((("per_row",), "draws examples for each row; give n and seed too"))
        check_parameters(self, faults)

    def read(self, folder: str) -> list[Shot]:
        """The examples, in the order in which they are shown; with `per_row` all that may be drawn.

        Args:
            folder: to which the path is relative.

        Raises:
            SpecError: there is no such file or column, or there are fewer than `n` examples.
        """
        data = Dataset.from_file(Path(folder, self.path), input=self.input, expected=self.expected)
        data = data if self.where is None else data.where(self.where)
        if len(data) < (self.n or 1):
            raise SpecError(f"{self.path}: holds {plural(len(data), 'example')}, fewer than n: {self.n or 1}")
        if self.per_row:
            chosen = iter(data)
        else:
            chosen = islice(data, self.n) if self.seed is None else iter(sorted(data, key=self._lot)[: self.n])
        column = data.roles.input if isinstance(data.roles.input, str) else None
        shots = [Shot(values_of(one.input, column), one.expected, one.digest, self.expected) for one in chosen]
        if unanswered := [number for number, shot in enumerate(shots) if shot.answer is None]:
            raise DataError(f"{self.path}: example {unanswered[0]} has no {self.expected}; leave it out with where")
        return shots

    def order(self, row: Any, size: int) -> Iterator[int]:
        """The numbers below a size in an order that depends on the seed and on what the row asks.

        Example:
            >>> shots = FewShot("shots.csv", n=2, seed=7, per_row=True)
            >>> sorted(shots.order("Rain?", 4)), [*shots.order("Rain?", 4)] == [*shots.order("Rain?", 4)]
            ([0, 1, 2, 3], True)
        """
        key, moved = identity.digest([self.seed, row]).hex(), dict[int, int]()
        for place in range(size):  # Fisher and Yates' shuffle, as far as it is asked for
            lot = place + int.from_bytes(identity.digest([key, place])[:8], "big") % (size - place)
            yield moved.get(lot, lot)
            moved[lot] = moved.get(place, place)

    def _lot(self, example: Any) -> bytes:
        """What the examples are ordered by to draw some: the same ones are drawn where others are added behind them."""
        return identity.digest([self.seed, example.digest.hex()])


class Shot(NamedTuple):
    """An answered example.

    Attributes:
        values: what templates see of it.
        answer: the expected value.
        digest: of the example.
        column: of the answer.
    """

    values: Mapping[str, Any]
    answer: Any
    digest: bytes
    column: str


@dataclass(frozen=True)
class Conversation:
    """The messages of a task.

    Args:
        templates: of the messages, in order.
        history: the name of the value with the row's earlier turns.
        shots: answered examples.
        images: the names of the values with images, which follow the text of the last message that is asked.
        drawn: draws some of the examples for each row; all are shown without it.
        columns: further values that a row must have: the place of each among the parameters, and its name.
        added: what the task adds to the values: name → name of the value by whose equality an example asks what a row
            asks, in place of the first.
    """

    templates: Sequence[MessageTemplate]
    history: str | None = None
    shots: Sequence[Shot] = ()
    images: Sequence[str] = ()
    drawn: FewShot | None = None
    columns: Sequence[tuple[Place, str]] = ()
    added: Mapping[str, str] = field(default_factory=dict)

    @property
    def spec(self) -> dict[str, Any]:
        """What the messages depend on besides the row."""
        messages = [{"role": one.role, "content": one.content.text} for one in self.templates]
        examples: Any = [shot.digest.hex() for shot in self.shots]
        if self.drawn is not None:
            examples = {"n": self.drawn.n, "seed": self.drawn.seed, "of": identity.digest(examples).hex()}
        spec: dict[str, Any] = {"messages": messages, "history": self.history, EXAMPLES: examples}
        return {**spec, IMAGES: [*self.images]} if self.images else spec

    def faults(self, dataset: Dataset) -> Iterator[tuple[Place, str]]:
        """What the messages need and the rows of a dataset do not have."""
        known, advice = known_names(dataset), unseen_columns(dataset)
        columns: list[tuple[Place, str]] = [*self.columns, *([(("history",), self.history)] if self.history else [])]
        columns += [((IMAGES, number), name) for number, name in enumerate(self.images)]
        for place, name in columns:
            if name not in known:
                remedy = f"; {advice[name]}" if name in advice else alternatives(name, known)
                yield place, f"there is no value {name!r}{remedy}"
        names = [*known, *self.added, *([EXAMPLES] if self.shots else [])]
        for template in self.templates:
            yield from ((template.place, fault) for fault in template.content.faults(names, advice))

    def messages(self, input: Any) -> list[dict[str, Any]]:
        """The messages for an input.

        Raises:
            TaskError: a value is missing or null, the earlier turns are no messages, or too few examples ask something
                else than the row.
        """
        values = values_of(input, self._only_name)
        shots = self._chosen(values)
        values |= {EXAMPLES: [self._listed[place] for place in shots]} if self.shots else {}
        try:
            asked = self._ask(values)
            leading = [template.fill(values) for template in self._leading]
        except TemplateError as error:
            raise TaskError(str(error), code="template") from None
        earlier = [] if self.history is None else read_turns(values.get(self.history), self.history)
        shown = [message for place in shots for message in self._answered[place]] if self._answered else []
        made = [*leading, *shown, *earlier, *asked]
        if not asked and (not earlier or earlier[-1]["role"] not in ("user", "tool")):
            raise TaskError(f"{self.history} does not end with a message of the user; add a prompt", code="history")
        return made

    @cached_property
    def _leading(self) -> list[MessageTemplate]:
        return [template for template in self.templates if template.role in _LEADING]

    @cached_property
    def _asking(self) -> list[MessageTemplate]:
        return [template for template in self.templates if template.role not in _LEADING]

    @cached_property
    def _only_name(self) -> str | None:
        """The name of an input that is one value: the only one that templates use."""
        used = {name for template in self.templates for name in template.content.required}
        used |= {*self.images, self.history or INPUT}
        names = used - {INPUT, EXAMPLES, None}
        return names.pop() if len(names) == 1 else None

    @cached_property
    def _answered(self) -> list[list[dict[str, Any]]]:
        """The turns of each example, the last of which is its answer; none if a template writes them."""
        if any(EXAMPLES in template.content.variables for template in self.templates):
            return []
        return [
            [*self._ask(values), {"role": "assistant", "content": _answer_text(shot.answer)}]
            for values, shot in zip(self._seen, self.shots, strict=True)
        ]

    @cached_property
    def _seen(self) -> list[dict[str, Any]]:
        """What templates see of each example."""
        return [values_of(shot.values[INPUT], self._only_name) for shot in self.shots]

    def _chosen(self, values: Mapping[str, Any]) -> list[int]:
        """The places of the examples that a row sees: none that asks the same."""
        if self.drawn is None:
            return [place for place, shot in enumerate(self._seen) if not self._is_same(values, shot)]
        asked = {name: values[name] for name in sorted(self._compared & values.keys() or {INPUT})}
        order = self.drawn.order(asked, len(self._seen))
        chosen = [*islice((place for place in order if not self._is_same(values, self._seen[place])), self.drawn.n)]
        if len(chosen) < (self.drawn.n or 0):
            raise TaskError(f"only {plural(len(chosen), 'example')} ask something else than the row", code=EXAMPLES)
        return chosen

    def _is_same(self, values: Mapping[str, Any], shot: Mapping[str, Any]) -> bool:
        """Whether an example asks what a row asks: it would show the answer.

        What only one of the two has, such as the number of a row, does not tell them apart.
        """
        names = self._compared & values.keys() & shot.keys() or {INPUT}
        return all(values[name] == shot[name] for name in names)

    @cached_property
    def _compared(self) -> set[str]:
        """The names of the values in which an example that asks what a row asks equals it."""
        used = {name for template in self._asking for name in template.content.variables} | {*self.images}
        return {self.added.get(name, name) for name in used}

    def _ask(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What is asked about some values: the text of every message, and the images behind that of the last."""
        asked = [template.fill(values) for template in self._asking]
        if asked and self.images:
            images = [part for name in self.images for part in read_images(values.get(name), name)]
            asked[-1]["content"] = [{"type": "text", "text": asked[-1]["content"]}, *images]
        return asked

    @cached_property
    def _listed(self) -> list[dict[str, Any]]:
        return [{**shot.values, shot.column: shot.answer} for shot in self.shots]


def read_template(text: str, folder: str, place: Place) -> Template:
    """A template as a file or its text.

    Args:
        text: the template, or `file:` and a path.
        folder: to which the path is relative.
        place: where it is among the parameters.

    Raises:
        ParameterError: there is no such file, or it is no template; lists every fault.
    """
    name = text.removeprefix(FILE).strip() if text.startswith(FILE) else ""
    try:
        template = Template(_read_file(Path(folder, name)) if name else text, name)
    except OSError as error:
        what = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise ParameterError([(place, f"{Path(folder, name)}: {what}")]) from None
    except UnicodeDecodeError as error:
        raise ParameterError([(place, f"{name}: byte {error.start:,} is not UTF-8; save it as UTF-8")]) from None
    except SpecError as error:  # a fault of the template, or nothing is installed that reads it
        raise ParameterError([(place, line) for line in str(error).split("\n")]) from None
    if not template.text.strip():
        raise ParameterError([(place, "is empty")])
    return template


def values_of(input: Any, only_name: str | None = None) -> dict[str, Any]:
    """What templates see of an input.

    Args:
        only_name: a further name of an input that is one value.

    Example:
        >>> values_of({"question": "Rain?"}) == {"input": {"question": "Rain?"}, "question": "Rain?"}
        True
        >>> values_of("Rain?", "question")
        {'input': 'Rain?', 'question': 'Rain?'}
    """
    if isinstance(input, Mapping):
        return {INPUT: input} | dict(input)
    return {INPUT: input} | ({} if only_name is None else {only_name: input})


def known_names(dataset: Dataset) -> list[str]:
    """The names of what templates see of a dataset's rows."""
    inputs, column = dataset.roles.input, None
    if dataset.view_spec is None:
        if not isinstance(inputs, str):
            return list(dict.fromkeys((*inputs, INPUT)))
        column = inputs
    keys = [key for one in islice(dataset.inputs(), _LOOKED_AT) if isinstance(one, Mapping) for key in one]
    if column is not None and not keys and column.isidentifier():
        keys = [column]
    return list(dict.fromkeys((*keys, INPUT)))


def unseen_columns(dataset: Dataset) -> dict[str, str]:
    """The columns of a dataset that tasks do not see, each with what to do to use it in a template."""
    roles = dataset.roles
    seen = [roles.input] if isinstance(roles.input, str) else [*roles.input]
    expected = [roles.expected] if isinstance(roles.expected, str) else (roles.expected or {}).values()
    return {
        name: "this column is the expected answer, which tasks do not see"
        if name in expected
        else f"tasks see this column with input: [{', '.join([*seen, name])}]"
        for name in dataset.schema.names
        if name not in seen
    }


def read_turns(value: Any, name: str) -> list[dict[str, Any]]:
    """The earlier turns in a row; none if there is no value.

    Args:
        name: of the value, for messages.

    Raises:
        TaskError: it is no list of messages, each with `role` and `content`, or an image is a path.
    """
    if value is None or (isinstance(value, list | tuple) and not value):
        return []
    turns = [*value] if isinstance(value, list | tuple) else value
    for place, turn in enumerate(turns if isinstance(turns, list) else ()):
        if isinstance(turn, Mapping):  # in a column, all turns have the keys of each
            turns[place] = {key: cell for key, cell in turn.items() if cell is not None}
            parts = turn.get("content")
            for part in parts if isinstance(parts, list) else ():
                if isinstance(part, Mapping) and part.get("image") is not None:
                    read_images(part["image"], f"{name}[{place}]")
    try:
        return read_messages(turns)
    except TaskError as error:
        raise TaskError(f"{name}: {error}", code="history") from None


def read_images(value: Any, name: str) -> list[dict[str, Any]]:
    """The images in a value of a row, as parts of a message: bytes, data URLs or addresses, one or a list.

    Args:
        name: of the value, for messages.

    Raises:
        TaskError: there is no image, or it is a path: a row must not choose a file that is sent.

    Example:
        >>> read_images("https://example.org/cat.png", "photo")
        [{'type': 'image', 'image': 'https://example.org/cat.png'}]
    """
    if value is None or value == []:
        raise TaskError(f"{name} has no image", code="image")
    if isinstance(value, list | tuple):
        return [part for place, each in enumerate(value) for part in read_images(each, f"{name}[{place}]")]
    if isinstance(value, Mapping) and isinstance(value.get("bytes"), bytes):  # a column of images of Hugging Face
        value = value["bytes"]
    if isinstance(value, str) and not value.startswith(_ADDRESSES):
        raise TaskError(f"{name} names a file; {_IMAGES_IN_ROWS}", code="image")
    if not isinstance(value, str | bytes):
        raise TaskError(f"{name} is {kind_of(value)}; {_IMAGES_IN_ROWS}", code="image")
    return [{"type": "image", "image": value}]


def _read_file(path: Path) -> str:
    return read_regular_file(path, _LONGEST_PROMPT, follow_link=True).decode("utf-8-sig")


def _answer_text(answer: Any) -> str:
    """An answer as a model would write it: text as it is, anything else as JSON."""
    return answer if isinstance(answer, str) else identity.json_text(answer)
