"""Hostile inputs made of sound ones: changes of bytes, of text, of cells, and of values in trees.

A change takes the content, a source of chance and the other inputs of the same target, and never fails.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from faults.fuzzing.trees import (
    NUMBERS,
    STRINGS,
    as_bytes,
    change_json,
    change_json_lines,
    change_sealed,
    change_yaml,
)

Change = Callable[[bytes, Random, Sequence[bytes]], bytes]

MOST_BYTES: Final = 1 << 17


# Bytes


def flip_bits(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 8])):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def cut(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    start = random.randrange(len(content) + 1)
    return content[:start] if random.random() < 0.5 else content[start:]


def remove_block(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    start, size = _block(content, random)
    return content[:start] + content[start + size :]


def fill_block(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    start, size = _block(content, random)
    filled = random.choice([b"\0", b"\xff", b"\x80", b"A"]) * len(content[start : start + size])
    return content[:start] + filled + content[start + size :]


def repeat_block(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    start, size = _block(content, random)
    block = content[start : start + size]
    return content[:start] + block * random.choice([2, 3, 100]) + content[start + size :]


def splice(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    other = random.choice(others) if others else content
    return content[: random.randrange(len(content) + 1)] + other[random.randrange(len(other) + 1) :]


def insert_bytes(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    place = random.randrange(len(content) + 1)
    return content[:place] + random.randbytes(random.choice([1, 2, 4, 30])) + content[place:]


def set_integer(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """An integer at an edge in the place of four or eight bytes."""
    size, form = random.choice([(4, "I"), (8, "Q")])
    if len(content) < size:
        return content
    bits = 8 * size
    edges = [0, 1, 2, 127, 128, 255, 256, 65535, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1, 2**bits - 8]
    edges += [1 << 20, 1 << 30, 2**31 - 1, len(content), len(content) - 1]
    place = random.randrange(len(content) - size + 1)
    order = random.choice("<<>")
    return content[:place] + struct.pack(order + form, random.choice(edges)) + content[place + size :]


def _block(content: bytes, random: Random) -> tuple[int, int]:
    return random.randrange(len(content) + 1), random.choice([1, 2, 4, 8, 16, 64, 256])


BYTES: Final[tuple[Change, ...]] = (
    *(flip_bits, flip_bits, cut, remove_block, fill_block, repeat_block, splice, insert_bytes),
    *(set_integer, set_integer, set_integer),
)


# Text


_NUMBER: Final = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD: Final = re.compile(rb'[^\s,;:\[\]{}()"\'=<>]+')
_SIGNS: Final = [b"\n", b"\r", b"\t", b",", b";", b":", b'"', b"'", b"[", b"]", b"{", b"}", b"(", b")", b"=", b"<"]


def replace_number(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return _replace(content, _NUMBER, random.choice(NUMBERS).encode(), random)


def replace_word(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return _replace(content, _WORD, as_bytes(random.choice(STRINGS)), random)


def exchange_words(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """A word of this or of another input in the place of another word."""
    words = _WORD.findall(random.choice([content, *others])[:20_000])
    return _replace(content, _WORD, random.choice(words) if words else b"", random)


def change_sign(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    place = random.randrange(len(content) + 1)
    return content[:place] + random.choice(_SIGNS) + content[place + random.choice([0, 0, 1]) :]


def move_lines(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """Lines doubled, removed, exchanged or joined."""
    lines = content.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    what = random.randrange(4)
    if what == 0:
        lines[one:one] = [lines[other]] * random.choice([1, 1, 50])
    elif what == 1:
        del lines[one]
    elif what == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines[one : one + 2] = [b"".join(lines[one : one + 2])]
    return b"\n".join(lines)


def nest_brackets(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    opening, closing = random.choice([(b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"not ", b""), (b"-", b"")])
    times = random.choice([2, 100, 2000])
    start = random.randrange(len(content) + 1)
    end = random.randrange(start, len(content) + 1)
    return content[:start] + opening * times + content[start:end] + closing * times + content[end:]


def recode(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """The text in another encoding, or with other line ends."""
    text = content.decode("utf-8", "replace")
    if random.random() < 0.3:
        return content.replace(b"\n", random.choice([b"\r\n", b"\r", b"\n\n"]))
    return text.encode(random.choice(["utf-8-sig", "utf-16", "utf-32", "latin-1", "utf-7"]), "replace")


def _replace(content: bytes, pattern: re.Pattern[bytes], new: bytes, random: Random) -> bytes:
    found = [*pattern.finditer(content[:20_000])]
    if not found:
        return content
    start, end = random.choice(found).span()
    return content[:start] + new + content[end:]


TEXT: Final[tuple[Change, ...]] = (
    *(replace_number, replace_number, replace_word, replace_word, exchange_words, exchange_words),
    *(change_sign, change_sign, move_lines, nest_brackets, recode),
)


# Cells


def change_row(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """A row with other cells, more of them or fewer."""
    lines, sign = content.split(b"\n"), b"\t" if b"\t" in content.partition(b"\n")[0] else b","
    number = random.choice([0, random.randrange(len(lines))])
    cells = lines[number].split(sign)
    place = random.randrange(len(cells))
    what = random.randrange(6)
    if what == 0:
        del cells[place]
    elif what == 1:
        cells[place:place] = [cells[place]] * random.choice([1, 2, 4000])
    elif what == 2:
        cells[place] = b'"' + cells[place] + random.choice([b'"', b"", b'""', b'"x', b'\n"', b'\r\n"'])
    elif what == 3:
        cells[place] = b""
    else:
        cells[place] = as_bytes(random.choice([*NUMBERS, *STRINGS]))
    lines[number] = sign.join(cells)
    return b"\n".join(lines)


def change_delimiter(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return content.replace(b",", random.choice([b";", b"\t", b"|", b", ", b",,", b" "]))


def widen(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """All rows with many more cells."""
    lines = content.split(b"\n")
    extra = random.choice([3, 1000])
    names = b",".join(b"more%d" % number for number in range(extra))
    return b"\n".join(
        line + b"," + (b",".join([b"1"] * extra) if number else names) for number, line in enumerate(lines)
    )


CELLS: Final[tuple[Change, ...]] = (change_row, change_row, change_row, change_row, change_delimiter, widen)


# Several parts in one input


def of_store(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """The content of a file of a store, whose path is the first line."""
    path, _, inner = content.partition(b"\n")
    families: list[Change] = [*BYTES]
    if path.endswith(b".json"):
        families = [_sealed] * 20 + [*TEXT]
    elif path.endswith(b".lines"):
        families = [*TEXT, *BYTES, _json_lines, _json_lines, _json_lines]
    inners = [other.partition(b"\n")[2] for other in others]
    return path + b"\n" + random.choice(families)(inner, random, inners)


def _json(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return change_json(content, random)


def _json_lines(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return change_json_lines(content, random)


def _yaml(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return change_yaml(content, random)


def _sealed(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return change_sealed(content, random)


FORMS: Final[dict[str, tuple[tuple[Change, ...], ...]]] = {
    "binary": (BYTES,),
    "text": (TEXT, TEXT, TEXT, BYTES),
    "json": ((_json,), (_json,), (_json,), (_json,), TEXT, BYTES),
    "lines": ((_json_lines,), (_json_lines,), TEXT, BYTES),
    "yaml": ((_yaml,), (_yaml,), (_yaml,), (_yaml,), TEXT, BYTES),
    "cells": (CELLS, CELLS, TEXT, BYTES),
    "store": ((of_store,),),
}
"""The families of changes that suit a form of input; a family that suits it better occurs more often."""


def mutate(form: str, random: Random, inputs: Sequence[bytes]) -> bytes:
    """One of the inputs with one to four changes."""
    content = random.choice(inputs)
    families = FORMS[form]
    chosen = sorted(random.randrange(len(families)) for _ in range(random.choice([1, 1, 1, 1, 2, 3])))
    for number in chosen:  # trees first: after a change of bytes there often is none
        content = random.choice(families[number])(content, random, inputs)[:MOST_BYTES]
    return content
