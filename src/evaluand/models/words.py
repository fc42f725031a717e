"""The words of services and servers, as data: how replies end, what errors mean, the special tokens they leave.

The words of OpenAI, Anthropic, Gemini, Mistral, Cohere, DeepSeek, Zhipu, MiniMax, vLLM, llama.cpp and gateways.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final, Literal

import orjson

Ending = Literal["complete", "cut", "refused", "filtered", "failed"]

_WORDS: Final = orjson.loads(files("evaluand.models").joinpath("assets", "words.json").read_bytes())

ENDINGS: Final[Mapping[str, Ending]] = {word: ending for ending, words in _WORDS["endings"].items() for word in words}
"""The word for an ending, in lower case → the ending."""

STATUSES: Final[Mapping[str, int]] = {word: int(code) for code, words in _WORDS["statuses"].items() for word in words}
"""The word or number for an error, in lower case → the status that it stands for."""

LAST_TOKENS: Final[Sequence[str]] = _WORDS["last_tokens"]
"""The special tokens with which some servers let replies end."""
