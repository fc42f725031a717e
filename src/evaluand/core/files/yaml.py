"""YAML files whose faults are reported by line, all at once and in plain sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from evaluand.core.errors import DataError, Fault, ParameterError, SpecError, nearest
from evaluand.core.files.bounded_yaml import MOST_BYTES, BoundedLoader, YAMLLimitError
from evaluand.core.files.regular import read_regular_file

if TYPE_CHECKING:
    from pydantic import ValidationError

Place = tuple[Any, ...]


@dataclass(frozen=True)
class Advice:
    """What messages about the keys of a document say.

    Attributes:
        known: the valid keys at a place.
        meant_key: the valid key that an unknown one means.
        words: what to write in place of an unknown key, or for a missing one.
        entry_words: what to write for an entry that is neither a kind nor code.
    """

    known: Callable[[Place], Sequence[str]] = lambda place: ()
    meant_key: Callable[[Place], str | None] = lambda place: None
    words: Callable[[Place], str | None] = lambda place: None
    entry_words: Callable[[Place, Any], str | None] = lambda place, entry: None


class Document:
    """A YAML file with the line of every key and entry, and its faults.

    Args:
        content: the bytes of the file, if they have been read.

    Attributes:
        content: the bytes that were parsed.

    Raises:
        SpecError: the file cannot be read, or is not YAML.
    """

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        self.path = path
        self._lines: dict[Place, int] = {}
        self._texts: dict[Place, str] = {}
        self._sources: dict[Place, Place] = {}
        self._faults: list[tuple[int, Fault]] = []
        self._error: type[SpecError | DataError] = DataError
        try:
            self.content = read_regular_file(path, MOST_BYTES, follow_link=True) if content is None else content
            text = self.content.decode("utf-8-sig")
            node = yaml.compose(text, Loader=BoundedLoader)
        except FileNotFoundError:
            near = _nearest_file(path)
            raise SpecError(f"{path}: no such file{near or '; `evaluand run` takes an experiment file'}") from None
        except UnicodeDecodeError as error:
            raise SpecError(f"{path}: byte {error.start:,} is not UTF-8; save the file as UTF-8") from None
        except OSError as error:
            raise SpecError(f"{path}: {error.strerror}") from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
            if isinstance(error, YAMLLimitError):
                raise SpecError(f"{place}: {error.problem}") from None
            quotes = (
                "; put a text with [ ] { } , or : in quotes" if str(error.problem).startswith("expected ',' or") else ""
            )
            raise SpecError(f"{place}: not YAML: {error.problem}{quotes}") from None
        except yaml.reader.ReaderError as error:
            place = f"{path}:{text[: error.position].count(chr(10)) + 1}"
            raise SpecError(f"{place}: not YAML: character U+{error.character:04X}; remove it") from None
        try:
            self.value = self._value(node, ())
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise SpecError(f"{path}:{line}: not readable as YAML: {error.problem}") from None
        except ValueError as error:
            raise SpecError(f"{path}:{error}") from None

    @property
    def digest(self) -> str:
        """The digest of the file's content, in 32 hexadecimal digits."""
        return hashlib.blake2b(self.content).hexdigest()[:32]

    def text(self, *place: Any) -> str:
        """A scalar as it is written: `1.10`, which as a number is 1.1."""
        document, there = self._find(place)
        return document._texts[there]

    def derive(self, place: Place, value: Any, sources: Mapping[Place, Place]) -> None:
        """Adds an entry of a mapping that the document means without writing it; its faults name what is written.

        Args:
            place: of the entry.
            sources: where parts of the entry are written, by their places in it; `()` is the entry itself.
        """
        above = self.value
        for step in place[:-1]:
            above = above[step]
        above[place[-1]] = value
        self._sources |= {(*place, *part): source for part, source in sources.items()}

    def place(self, place: Place, source: Place) -> None:
        """Says where a part is written that the document means: `mine: recorded` is the kind of `mine`."""
        self._sources[place] = source

    def add(self, place: Place, message: str) -> None:
        """Adds a fault of the file, at a place or at the nearest place above it that has a line."""
        self._error = SpecError
        self._add(place, message)

    @contextmanager
    def at(self, *place: Any) -> Iterator[None]:
        """Adds what is raised in the block as faults at a place; faults of data that have their own place keep it."""
        from pydantic import ValidationError  # on use: it takes 60 ms, and files are read where nothing is validated

        try:
            yield
        except ValidationError as error:
            self.add_all(error, place)
        except ParameterError as error:
            for within, message in error.faults:
                self.add((*place, *within), message)
        except SpecError as error:
            for line in str(error).split("\n"):
                self.add(place, line)
        except DataError as error:
            for fault in error.faults:
                if fault.where:
                    self._faults.append((self._line(place), fault))
                else:
                    self._add(place, fault.message)

    def add_all(self, error: ValidationError, place: Place = (), advice: Advice | None = None) -> None:
        """Adds every fault of a validation.

        Args:
            place: where the validated value is.
            advice: what messages say about keys.
        """
        advice = advice or Advice()
        mismatches: dict[Place, tuple[Any, list[str]]] = {}
        faults = [((*place, *self._steps(place, fault)), fault) for fault in error.errors()]
        meant = {(*at[:-1], advice.meant_key(at)) for at, fault in faults if fault["type"] == "extra_forbidden"}
        for at, fault in faults:
            if fault["type"] == "missing":
                if at not in meant:  # else the unknown key that means it says so
                    words = advice.words(at)
                    self.add(at, f"is missing; write {words}" if words else "is missing")
            elif fault["type"] == "extra_forbidden":
                self.add(at, _unknown_key(at, advice))
            elif fault["type"] == "unexpected_keyword_argument":
                self.add(at, "unknown key")
            elif fault["type"] not in _EXPECTED:
                self.add(at, fault["msg"])
            else:
                near = advice.entry_words(at, fault["input"]) if fault["type"] in _SHAPES else None
                mismatches.setdefault(at, (fault["input"], []))[1].append(near or _expected(fault))
        above = {at[:length] for at in mismatches for length in range(len(at))}
        for at, (value, alternatives) in mismatches.items():
            if at not in above:  # else a fault further in says it
                self.add(at, f"is {_describe(value)}; give {' or '.join(dict.fromkeys(alternatives))}")

    def check(self) -> None:
        """Raises all faults in the order of their lines: a DataError where all are of data, else a SpecError."""
        if self._faults:
            faults = [fault for _, fault in sorted(self._faults, key=lambda found: found[0])]
            error = DataError(dict.fromkeys(faults))
            raise error if self._error is DataError else SpecError(str(error))

    def _add(self, place: Place, message: str) -> None:
        document, there = self._find(place)
        line, what = self._line(place), ".".join(map(str, there))
        self._faults.append((line, Fault(f"{document.path}:{line}", f"{what}: {message}" if what else message)))

    def _find(self, place: Place) -> tuple[Document, Place]:
        """The document in which something is written, and its place there."""
        return self, self._written(place)

    def _written(self, place: Place) -> Place:
        """Where in the document something is written."""
        for length in range(len(place), 0, -1):
            if place[:length] in self._sources:
                return (*self._sources[place[:length]], *place[length:])
        return place

    def _line(self, place: Place) -> int:
        """The line of what is written there, or else of the nearest above it."""
        document, there = self._find(place)
        while there and there not in document._lines:
            there = there[:-1]
        return document._lines.get(there, 1)

    def _steps(self, place: Place, fault: Any) -> Iterator[Any]:
        """The path to a fault without the steps that name one of several types."""
        value = self.value
        for step in place:
            if step != 0 or isinstance(value, list):  # one entry may stand where a list is usual
                value = value[step] if isinstance(value, Mapping | list) else None
        for step in fault["loc"]:
            is_item = isinstance(value, list) and isinstance(step, int) and step < len(value)
            if is_item or (isinstance(value, Mapping) and step in value):
                value = value[step]
                yield step
        if fault["type"] == "missing":
            yield fault["loc"][-1]

    def _value(self, node: yaml.Node | None, place: Place) -> Any:
        if node is None:
            return None
        self._lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*place, i)) for i, item in enumerate(node.value)]
        self._texts[place] = node.value
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ValueError(f"{key_node.start_mark.line + 1}: a key is a list or a mapping; write text")
            self._lines[*place, key_node.value] = key_node.start_mark.line + 1
            if key_node.value in seen:
                self.add((*place, key_node.value), "occurs twice; give each entry a different name")
            seen.add(key_node.value)
        yaml.constructor.SafeConstructor().flatten_mapping(node)  # `<<: *anchor`
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            self._lines.setdefault((*place, key_node.value), key_node.start_mark.line + 1)
            result[str(key_node.value)] = self._value(value_node, (*place, key_node.value))
        return result


class ComposedDocument(Document):
    """A document whose parts are written in other documents; its faults name the file and the line of each.

    Args:
        value: the content, a copy of the parts.
        parts: key → the document and the place where its value is written.
        rest: where all other keys would be written.
    """

    def __init__(
        self, value: dict[str, Any], parts: Mapping[str, tuple[Document, Place]], rest: tuple[Document, Place]
    ) -> None:
        self.value, self._parts, self._rest = value, parts, rest
        self.path = rest[0].path
        self.content = b"".join(document.content for document in {id(each): each for each, _ in self._homes}.values())
        self._sources, self._faults, self._error = {}, [], DataError

    def take_faults(self, document: Document) -> None:
        """Adds the faults that were found in a document of which this is composed."""
        self._faults += document._faults
        self._error = SpecError if document._error is SpecError else self._error

    @property
    def _homes(self) -> Iterator[tuple[Document, Place]]:
        yield from self._parts.values()
        yield self._rest

    def _find(self, place: Place) -> tuple[Document, Place]:
        """The document in which something is written, and its place there."""
        written = self._written(place)
        if written and written[0] in self._parts:
            document, above = self._parts[written[0]]
            return document, (*above, *written[1:])
        document, above = self._rest
        return document, (*above, *written)


def _nearest_file(path: Path) -> str:
    """A YAML file of the same folder with nearly the same name, for a message."""
    with suppress(OSError):
        others = {other.stem: other.name for other in path.parent.iterdir() if other.suffix in (".yaml", ".yml")}
        if near := get_close_matches(path.stem, others, n=1):
            return f" (did you mean {others[near[0]]!r}?)"
    return ""


def _unknown_key(at: Place, advice: Advice) -> str:
    words = advice.words(at)
    if words:
        return f"unknown key; write {words}"
    names = advice.known(at[:-1])
    return f"unknown key{nearest(str(at[-1]), names)}; known keys: {', '.join(names)}"


def _scalar(node: yaml.Node) -> Any:
    """A scalar; words such as `no`, `on` and dates stay text, as their writer most likely meant.

    Raises:
        ValueError: begins with the line.
    """
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind == "timestamp" or (kind == "bool" and node.value.lower() not in ("true", "false")):
        return node.value
    line = node.start_mark.line + 1
    if kind in ("int", "float") and len(node.value) > _LONGEST_NUMBER:
        raise ValueError(f"{line}: a number has {len(node.value):,} characters; give at most {_LONGEST_NUMBER}")
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (ValueError, TypeError, LookupError, ArithmeticError):
        raise ValueError(f"{line}: {_describe(node.value)} is not a value of the type {kind}") from None


_MAPPING = "a mapping (name: value)"
_EXPECTED = {
    "string_type": "text",
    "string_too_short": "some text",
    "string_pattern_mismatch": "file.py:name or module:name",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": _MAPPING,
    "mapping_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "too_short": "at least one entry",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "union_tag_not_found": "either kind: … (a registered kind) or function: file.py:name",
}
"""What to give instead, by pydantic's name for the kind of fault."""


def _expected(fault: Any) -> str:
    words = _EXPECTED[fault["type"]].format(**fault.get("ctx", {}))
    if fault["type"] == "string_type" and isinstance(fault["input"], bool | int | float):
        words += f' in quotes ("{_describe(fault["input"])}")'
    return words


def _describe(value: Any) -> str:
    """A value as its writer sees it."""
    if value is None or value in ({}, []):
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"a mapping of {', '.join(map(str, value))}"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_SHAPES = ("union_tag_not_found", "model_type")
_LONGEST = 60
_LONGEST_NUMBER = 300
