"""Changes of JSON and YAML documents that know their values: replaced, deleted, doubled, nested, of another type."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import yaml

from evaluand.core import identity

Place = tuple[str | int, ...]
Parsed = Any

DEEP: Final = 2000
NUMBERS: Final = (
    *("1e999", "-1e999", "NaN", "-Infinity", "-0", "-0.0", "1e-400", "1e308", "1.5", "-1", "0", "1", "2"),
    *(str(2**31), str(2**53 + 1), str(2**63 - 1), str(2**63), str(-(2**63) - 1), str(2**64), "1" + "0" * 400),
    *("9" * 4000, "0x7fffffffffffffff", "0o17", "1_000", "1:2:3", "1e5", "253402300800", "-62135596801"),
)
STRINGS: Final = (
    *("", " ", "\0", "a\0b", "\ud800", "\u202e\u2066abc", "../../../etc/passwd", "/etc/passwd", "~/x", "a/b"),
    *("x" * 300, "x" * 9000, "${HOME}", "$ref", "{{ 7 * 7 }}", "{{ x", "%s%n", "NaN", "null", "true", "\x1b[31m"),
    *("é" * 200, "\ufeff", "a\nb", "\r\n", "$[", "$..*", "$[?@.a==1]", "[", "(", '"', "'", "\\", "C:\\x", "."),
    *("2020-02-30", "0001-01-01", "9999-12-31T23:59:60Z", "12345-01-01", "P1D", "http://[::1", "file:x", "os:system"),
    *("=1+1", "a" * 40 + "!", "(a+)+$", "__class__", "0", "-1", "1e999", "١", "𝟙", "ß", "ﬀ", "İ"),
)
RAW: Final = (*NUMBERS, "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "[" * DEEP)
"""Texts of values that a writer would not write."""


def placeholder(number: int) -> str:
    return f"@raw{number}@"


def hostile_value(random: Random) -> Any:
    """A value that is unlikely to be expected."""
    kind = random.randrange(6)
    if kind == 0:
        return random.choice(STRINGS)
    if kind in (1, 2):
        return placeholder(random.randrange(len(RAW)))
    return random.choice([None, True, False, [], {}, [[]], [None], {"": None}, {"a": {"b": 1}}, ["x", 1, None], 0, 0.5])


def places(value: Any, above: Place = ()) -> Iterator[Place]:
    """The places of all values, from the whole on."""
    yield above
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*above, key))


def at(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def swap_type(value: Any, random: Random) -> Any:
    """The value as another type would have it."""
    if isinstance(value, dict):
        return random.choice([[*value.items()], [*value.values()], json.dumps(str(value)), [value]])
    if isinstance(value, list):
        return random.choice([dict(enumerate_texts(value)), str(value), value[0] if value else None, [value]])
    if isinstance(value, str):
        return random.choice([len(value), [value], {"value": value}, [*value[:50]], value.upper(), f" {value} "])
    return random.choice([str(value), [value], {"value": value}, not value])


def enumerate_texts(values: list[Any]) -> Iterator[tuple[str, Any]]:
    return ((str(number), value) for number, value in enumerate(values))


def change_tree(document: Any, random: Random) -> Any:
    """The document with one change in a place of it."""
    document = copy.deepcopy(document)
    known = [*places(document)]
    place = random.choice(known)
    if not place:
        return swap_type(document, random) if random.random() < 0.5 else hostile_value(random)
    holder, key = at(document, place[:-1]), place[-1]
    value = holder[key]
    what = random.randrange(9)
    if what == 0:
        del holder[key]
    elif what == 1:
        holder[key] = swap_type(value, random)
    elif what == 2:
        holder[key] = copy.deepcopy(at(document, random.choice(known)))
    elif what == 3:
        holder[key] = nest(value, random)
    elif what == 4 and isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(value) for _ in range(random.choice([1, 1, 2, 300]))]
    elif what in (4, 5) and isinstance(holder, dict):
        holder[unknown_key(str(key), random)] = holder.pop(key) if random.random() < 0.3 else copy.deepcopy(value)
    elif what == 6 and isinstance(value, str):
        holder[key] = change_text(value, random)
    else:
        holder[key] = hostile_value(random)
    return document


def unknown_key(key: str, random: Random) -> str:
    return random.choice([f"{key}s", key[:-1], key.upper(), f"{key} ", random.choice(STRINGS), "$ref", "kind", "id"])


def nest(value: Any, random: Random) -> Any:
    for _ in range(random.choice([1, 2, 60, 200])):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value


def change_text(text: str, random: Random) -> str:
    """A text with a piece of another in it."""
    start = random.randrange(len(text) + 1)
    end = min(len(text), start + random.choice([0, 0, 1, 5, 50]))
    return text[:start] + random.choice([*STRINGS, *NUMBERS]) + text[end:]


def with_raw_values(text: str) -> str:
    for number, raw in enumerate(RAW):
        for quote in ('"', "'", ""):
            text = text.replace(f"{quote}{placeholder(number)}{quote}", raw)
    return text


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def change_json(content: bytes, random: Random) -> bytes:
    """A JSON document with another value somewhere; what is no JSON stays as it is."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content
    changed = change_tree(document, random)
    return as_bytes(with_raw_values(json.dumps(changed, ensure_ascii=random.random() < 0.5)))


def change_json_lines(content: bytes, random: Random) -> bytes:
    """JSON lines of which one has another value somewhere."""
    lines = content.split(b"\n")
    number = random.randrange(len(lines))
    lines[number] = change_json(lines[number], random)
    return b"\n".join(lines)


def change_yaml(content: bytes, random: Random) -> bytes:
    """A YAML document with another value somewhere, or with something that only YAML has."""
    change: Callable[[bytes, Random], bytes] = random.choice([_change_values, _change_values, _change_syntax])
    return change(content, random)


def _change_values(content: bytes, random: Random) -> bytes:
    try:
        changed = change_tree(yaml.safe_load(content), random)
        written = yaml.safe_dump(changed, sort_keys=False, allow_unicode=random.random() < 0.5)
    except Exception:  # PyYAML raises anything for tags that do not fit
        return content
    return as_bytes(with_raw_values(written))


SYNTAX: Final = (
    *("&a", "*a", "<<: *a", "<<: [*a, *a]", "<<: 1", "&a [*a]", "&a {<<: *a}", "!!python/object:os.system x", "!x y"),
    *("!!binary =", "!!timestamp 2001-99-99", "!!int x", "!!float x", "!!set {a}", "!!omap [a: 1]", "!!null x"),
    *("? [a, b]\n: 1", "? a", "2001-02-30", "2001-01-01 25:00:00", "0x_", "0b2", "190:20:30", ".nan", "-.inf", "~"),
    *(
        "=",
        "---",
        "...",
        "%YAML 9.9\n---",
        "%TAG ! x\n---",
        "\t",
        "|9",
        ">-",
        "|\n  a\n b",
        "'",
        '"',
        '"\\x"',
        "@",
        "`",
    ),
    *("{" * 60, "[" * 3000, "- " * 3000, "a: " * 100, "#", ": ", "- - -", "\ufeff", "\x85", "\u2028", "\x01"),
    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]",
)


def _change_syntax(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\n")
    number = random.randrange(len(lines))
    line = lines[number]
    piece = as_bytes(random.choice(SYNTAX))
    indent = line[: len(line) - len(line.lstrip())]
    key, colon, value = line.partition(b": ")
    lines[number] = random.choice(
        [key + colon + piece, key + colon + piece + b" " + value, indent + piece, line + b"\n" + indent + piece]
    )
    return b"\n".join(lines)


def change_sealed(content: bytes, random: Random) -> bytes:
    """A manifest or name of a store with another value somewhere, and mostly a digest that matches."""
    try:
        changed = change_tree(json.loads(content), random)
    except (ValueError, RecursionError):
        return content
    if isinstance(changed, dict) and random.random() < 0.8:
        changed = seal(changed)
    return as_bytes(with_raw_values(json.dumps(changed)))


def seal(manifest: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in manifest.items() if name != "seal"}
    try:
        text = identity.canonical_text(rest).encode()
    except Exception:  # what has no canonical text cannot be sealed
        return manifest
    return rest | {"seal": identity.digest_of_text(text).hex()}
