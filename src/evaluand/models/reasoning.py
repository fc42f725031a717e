"""Reasoning within the text of a reply, apart from the answer.

Servers that know their model report its reasoning beside the answer. Others leave it in the text: between tags, before
a closing tag whose opening one was part of the prompt, or in the channels of gpt-oss.
"""

import re
from typing import Final, NamedTuple

from evaluand.models.words import LAST_TOKENS

_TAG: Final = re.compile(
    r"<\s*+(?P<end>/?)\s*+(?:seed:)?(?P<name>think|thinking|thoughts?|reasoning)\s*+>"
    r"|\[(?P<end_square>/?)THINK\]|◁(?P<end_kimi>/?)think▷",
    re.IGNORECASE,
)
_CHANNEL: Final = re.compile(
    r"<\|channel\|>\s*+(?P<name>\w+)[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>(?P<text>.*?)"
    r"(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)
_BARE_CHANNELS: Final = re.compile(
    r"\s*+analysis(?=[^\sa-z,.:;])(?P<reasoning>.*?)assistantfinal(?P<answer>.*)", re.DOTALL
)
"""What is left of channels where a server drops the special tokens."""
_QUOTES: Final = ("`", '"', "'")
_DATA: Final = ("{", "[", "```")


class ReadText(NamedTuple):
    """The parts of a text.

    Attributes:
        reasoning: what the model thought; None if the text has none.
        answer: the rest; empty where the reasoning has no end.
    """

    reasoning: str | None
    answer: str


def split_reasoning(text: str) -> ReadText:
    """The reasoning in a text and the answer after it, without special tokens at its end.

    Tags in the middle of an answer are part of it.

    Example:
        >>> split_reasoning("<think>Paris? No.</think> Lyon"), split_reasoning("Lyon")
        (ReadText(reasoning='Paris? No.', answer='Lyon'), ReadText(reasoning=None, answer='Lyon'))
        >>> split_reasoning("<think>It could be Paris, or").answer
        ''
    """
    if (channels := _read_channels(text)) is not None:
        return channels
    thoughts, rest = list[str](), _without_end(text)
    while (parts := _begun(rest)) is not None:
        thoughts.append(parts[0].strip())
        rest = parts[1]
    return ReadText("\n".join(thoughts), rest.strip()) if thoughts else ReadText(None, rest)


def join_reasoning(reasoning: str, answer: str) -> str:
    """A text with both, as a model writes them between tags."""
    return f"<think>\n{reasoning}\n</think>\n\n{answer}"


def _without_end(text: str) -> str:
    """A text without special tokens at its end, and the white space around them."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        token = next((token for token in LAST_TOKENS if text.endswith(token, 0, end)), None)
        if token is None:
            return text if text.rstrip() == text[:end] else text[:end]
        end -= len(token)


def _begun(text: str) -> tuple[str, str] | None:
    """The reasoning with which a text begins, and what follows it."""
    for tag in _TAG.finditer(text):
        if _closes(tag):
            if _stands_alone(tag, text):
                return text[: tag.start()], text[tag.end() :]
            continue
        if text[: tag.start()].strip():
            return None
        closing = next(filter(_closes, _TAG.finditer(text, tag.end())), None)
        if closing is not None:
            return text[tag.end() : closing.start()], text[closing.end() :]
        return (text[tag.end() :], "") if _is_think(tag) else None
    return None


def _closes(tag: re.Match[str]) -> bool:
    return bool(tag["end"] or tag["end_square"] or tag["end_kimi"])


def _is_think(tag: re.Match[str]) -> bool:
    """Whether a tag has a name that nobody gives to a part of an answer."""
    return (tag["name"] or "think").casefold().startswith("think")


def _stands_alone(tag: re.Match[str], text: str) -> bool:
    """Whether a closing tag without an opening one ends reasoning, and is not quoted or part of data."""
    before, after = text[: tag.start()], text[tag.end() :]
    if before.endswith(_QUOTES) or after.startswith(_QUOTES) or before.count("```") % 2 or not _is_think(tag):
        return False
    at_border = not before.rpartition("\n")[2].strip() or not after or after[0] in "\r\n"
    return at_border or not before.lstrip().startswith(_DATA)


def _read_channels(text: str) -> ReadText | None:
    """The parts of a text in the channels of gpt-oss; None if it has none."""
    if bare := _BARE_CHANNELS.match(text):
        return ReadText(bare["reasoning"].strip(), bare["answer"].strip())
    if "<|message|>" not in text or not (messages := [*_CHANNEL.finditer(text)]):
        return None
    before = re.split(r"<\|\w+\|>", text[: messages[0].start()])[0]  # thoughts whose channel began in the prompt
    thoughts = [before, *(message["text"] for message in messages if message["name"] != "final")]
    final = [message["text"] for message in messages if message["name"] == "final"]
    return ReadText("\n".join(filter(None, map(str.strip, thoughts))), "\n".join(final).strip())
