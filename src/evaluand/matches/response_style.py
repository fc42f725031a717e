"""The length and Markdown of a response, as counts: what a judge may prefer regardless of the content.

Matches store these counts for both responses, so that ratings and win rates can be controlled for them.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from evaluand.core.identity import encode


class ResponseStyle(NamedTuple):
    """The length and Markdown of one response.

    Attributes:
        characters: code points.
        words: pieces between white space.
        headings: lines that begin with one to six `#` and white space.
        list_items: lines that begin, perhaps indented, with `-`, `*`, `+` or `1.` and white space.
        bold: passages within a line between `**`, or between `__`.
        code_blocks: passages between two fences of three backticks, without a backtick inside.
    """

    characters: int
    words: int
    headings: int
    list_items: int
    bold: int
    code_blocks: int


def response_style(text: str) -> ResponseStyle:
    '''Count the length and Markdown of a text.

    Headings, list items and bold passages are counted outside code blocks, with the patterns of Chatbot Arena's style
    control; there, length is a number of tokens, and the text of a code block is not counted elsewhere either.
    Source: T. Li, A. Angelopoulos & W.-L. Chiang, "Does style matter? Disentangling style and substance in Chatbot
    Arena" (lmsys.org, 2024).

    Example:
        >>> response_style("""# Fruit
        ... - **apples**
        ... - pears
        ... """)
        ResponseStyle(characters=29, words=6, headings=1, list_items=2, bold=1, code_blocks=0)
    '''
    prose, code_blocks = _CODE_BLOCK.subn(_EMPTY_BLOCK, text) if "`" in text else (text, 0)
    line_starts = _LINE_START.findall("\n" + prose)
    list_items = line_starts.count("")
    bold = len(_BOLD_STARS.findall(prose)) if "*" in prose else 0
    if "_" in prose:
        bold += len(_BOLD_UNDERSCORES.findall(prose))
    return ResponseStyle(len(text), len(text.split()), len(line_starts) - list_items, list_items, bold, code_blocks)


def response_styles(outputs: Iterable[Any]) -> np.ndarray:
    """Count the length and Markdown of many outputs; one that is not text is counted as its canonical JSON text.

    Returns:
        Outputs × the six counts of `ResponseStyle`, as int64.

    Example:
        >>> response_styles(["two words", {"answer": 42}]).tolist()
        [[9, 2, 0, 0, 0, 0], [13, 1, 0, 0, 0, 0]]
    """
    styles = [response_style(one if isinstance(one, str) else encode(one).decode()) for one in outputs]
    return np.array(styles, np.int64).reshape(-1, len(ResponseStyle._fields))


_EMPTY_BLOCK: Final = "``````"
_CODE_BLOCK: Final = re.compile("```[^`]*```")
_LINE_START: Final = re.compile(r"\n(?:(#{1,6})|[^\S\n]*(?:\d+\.|[-*+]))(?=\s)")  # the group is empty for a list item
_BOLD_STARS: Final = re.compile(r"\*\*[^*\n]+\*\*")
_BOLD_UNDERSCORES: Final = re.compile(r"__[^_\n]+__")
