"""YAML from somebody else: aliases, depth, odd scalars and files that are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from evaluand.core.errors import SpecError
from evaluand.core.files.bounded_yaml import MOST_BYTES, BoundedLoader, YAMLLimitError
from evaluand.core.files.yaml import Document


def aliases(first: str, line: str) -> str:
    """Ten anchors, each of which refers to the one before nine times: 9**10 values."""
    return f"a: &a0 {first}\n" + "".join(f"b{i}: &a{i} {line.replace('*', f'*a{i - 1}')}\n" for i in range(1, 11))


NINE = ", ".join("*" * 9)
PAIRS = ", ".join(f"k{i}: *" for i in range(9))
HOSTILE = {
    "aliases in lists": (aliases("[x, y]", f"[{NINE}]"), ":6:5: has more than 100,000 values, with those that aliases"),
    "aliases in mappings": (aliases("{x: y}", f"{{{PAIRS}}}"), ":6:5: has more than 100,000 values"),
    "merges": (aliases("{x: y}", f"{{<<: [{NINE}]}}"), "has more than 100,000 values, with those that aliases stand"),
    "a chain": (aliases("[x]", "[*]") + "c: " + "[" * 42 + "*a10" + "]" * 42, "is nested more than 50 levels deep"),
    "aliases of a long text": (
        f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 420)}]",
        ":2:4: has more than 4,194,304 characters, with those that aliases stand for",
    ),
    "brackets": ("name: " + "[" * 100_000, ":1:57: is nested more than 50 levels deep"),
    "braces": ("name: " + "{a: " * 100_000, "is nested more than 50 levels deep"),
    "dashes": ("name:\n " + "- " * 100_000, "is nested more than 50 levels deep"),
    "keys": ("? " * 100_000, "is nested more than 50 levels deep"),
    "a cycle": ("a: &a\n- b\n- *a\n", ":3:3: refers to itself"),
    "a merged cycle": ("a: &a {<<: *a}", "refers to itself"),
    "a long number": ("seed: 1" + ":1" * 100_000, ":1: a number has 200,001 characters; give at most 300"),
    "no number": ("\nseed: !!int ''", ":2: '' is not a value of the type int"),
    "no time": (
        "a: 1\nseed: !!python/object:os.system x",
        ":2: not readable as YAML: could not determine a constructor",
    ),
    "a key that is a list": ("a: 1\n? [b]\n: c", ":2: a key is a list or a mapping; write text"),
    "a control character": ("a: 1\nb: \0", ":2: not YAML: character U+0000; remove it"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_document_is_refused_in_one_line(tmp_path: Path, what: str) -> None:
    text, message = HOSTILE[what]
    (tmp_path / "e.yaml").write_text(text)
    with pytest.raises(SpecError) as refused:
        Document(tmp_path / "e.yaml")
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path}/e.yaml:")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_none_is_refused_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    for path, message in (
        (tmp_path / "pipe", "is not a regular file"),
        (tmp_path, "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path / "huge", f"has more than {MOST_BYTES:,} bytes"),
    ):
        with pytest.raises(SpecError, match=f"^{path}: {message}$"):
            Document(path)


def test_aliases_and_merges_within_the_limits_are_read(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        "base: &base {a: 1, b: [2]}\nmore: {<<: *base, b: 3}\nlist: [*base, *base]\ndeep: " + "[" * 49 + "x" + "]" * 49
    )
    value = Document(tmp_path / "e.yaml").value
    assert value["more"] == {"a": 1, "b": 3}
    assert value["list"] == [{"a": 1, "b": [2]}] * 2


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=25)
@given(value=VALUES, is_flow=st.booleans())
def test_what_is_within_the_limits_is_loaded_as_by_pyyaml(value: object, is_flow: bool) -> None:
    shared = yaml.safe_dump([value, [value, value]], default_flow_style=is_flow)  # with anchors and aliases
    assert yaml.load(shared, BoundedLoader) == yaml.safe_load(shared)


@given(widths=st.lists(st.integers(1, 12), min_size=1, max_size=9))
def test_the_limit_counts_what_aliases_stand_for(widths: list[int]) -> None:
    text, values, total = "", 1, 1
    for i, width in enumerate(widths):
        text += f"k{i}: &a{i} [{', '.join([f'*a{i - 1}' if i else 'x'] * width)}]\n"
        values = 1 + width * values
        total += 1 + values
    if total > 100_000:
        with pytest.raises(YAMLLimitError):
            yaml.load(text, BoundedLoader)
    else:
        assert set(yaml.load(text, BoundedLoader)) == {f"k{i}" for i in range(len(widths))}
