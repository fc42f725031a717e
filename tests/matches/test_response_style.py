"""The counts of length and Markdown."""

import re

import numpy as np
from hypothesis import given, strategies as st

from evaluand.matches.response_style import ResponseStyle, response_style, response_styles

PIECES = ["#", "####### ", "## ", " ", "\n", "\n\n", "- ", "* ", "+\n", "1. ", "٣. ", "**", "__", "a", "é", "`", "```"]
MARKDOWN = st.lists(st.sampled_from([*PIECES, "\t", "\r\n", "\u3000", "\x1f", "b c"]), max_size=30).map("".join)


def test_counts_length_and_markdown():
    text = "# Plan\n\nTake **two** or __three__:\n  - bread\n  * milk\n12. tea\n\n```py\n# no heading\n- no item\n```\n"
    assert response_style(text) == ResponseStyle(96, 20, headings=1, list_items=3, bold=2, code_blocks=1)


def test_an_empty_text_has_no_words():
    assert response_style("") == ResponseStyle(0, 0, 0, 0, 0, 0)


def test_what_only_resembles_markdown_is_not_counted():
    assert response_style("#tag\n####### seven\n-dash\n2.5 l\n** **\nsnake__case\n2 * 3")[2:] == (0, 0, 1, 0)


@given(MARKDOWN)
def test_counts_what_the_patterns_of_style_control_count(text):
    prose = re.sub("```([^`]*)```", "``````", text)
    patterns = {
        "headings": [rf"^#{{{level}}}\s" for level in range(1, 7)],
        "list_items": [r"^\s*\d+\.\s", r"^\s*[-*+]\s"],
        "bold": [r"\*\*[^*\n]+\*\*", r"__[^_\n]+__"],
    }
    counts = [sum(len(re.findall(one, prose, re.MULTILINE)) for one in group) for group in patterns.values()]
    assert response_style(text) == (len(text), len(text.split()), *counts, len(re.findall("```[^`]*```", text)))


def test_long_blank_passages_take_linear_time():
    assert response_style("\n" * 200_000 + "- one" + " " * 200_000 + "**" * 100_000).list_items == 1


def test_outputs_that_are_no_text_count_as_their_json():
    counts = response_styles(["- one", {"b": [1, 2], "a": None}, 7])
    assert counts.dtype == np.int64
    assert counts[:, :2].tolist() == [[5, 2], [len('{"a":null,"b":[1,2]}'), 1], [1, 1]]
    assert counts[0, 3] == 1


def test_no_outputs_give_an_empty_table():
    assert response_styles([]).shape == (0, 6)
