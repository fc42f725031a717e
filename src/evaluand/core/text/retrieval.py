"""Retrievers, which find the passages that fit a query.

A retriever is any object with `search(query, limit)`. Two are here, both in memory: `WordIndex` counts words and needs
only numpy; `EmbeddingIndex` compares meanings and needs the extra `embeddings`. Both score every passage on every
search, so they are too slow for a million passages.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from evaluand.core import identity
from evaluand.core.errors import SpecError

_WORD = re.compile(r"\w+")
_EMBEDDED_AT_ONCE: Final = 4096
_loading = Lock()


class Passage(NamedTuple):
    """A passage that was found.

    Attributes:
        score: how well it fits the query, higher is better; scores of different indices cannot be compared.
    """

    text: str
    score: float
    id: str


@runtime_checkable
class Retriever(Protocol):
    """An object that finds passages for a query."""

    def search(self, query: str, limit: int = 4) -> Sequence[Passage]:
        """The passages that fit a query best, best first; none where nothing fits.

        Args:
            limit: the most passages to return.
        """


class _Index(ABC):
    """Passages with a score for each query."""

    def __init__(self, passages: Mapping[str, str] | Sequence[str]) -> None:
        if isinstance(passages, str):
            raise SpecError("passages must be a list of texts, or a mapping id → text, not one text")
        by_id = passages if isinstance(passages, Mapping) else {str(at): text for at, text in enumerate(passages)}
        self.ids, self.texts = tuple(by_id), tuple(by_id.values())

    def search(self, query: str, limit: int = 4) -> list[Passage]:
        """The passages that fit a query best, best first; of equal scores the earlier passage first.

        Raises:
            SpecError: the limit is below 1.
        """
        if limit < 1:
            raise SpecError(f"limit must be at least 1, not {limit}")
        scores = self._scores(query)
        best = np.argsort(-scores, kind="stable")[:limit]
        return [Passage(self.texts[at], float(scores[at]), self.ids[at]) for at in best if scores[at] > 0]

    def __len__(self) -> int:
        return len(self.texts)

    @abstractmethod
    def _scores(self, query: str) -> npt.NDArray[np.float64]:
        """How well each passage fits; 0 or less where it does not."""

    @property
    def _content(self) -> str:
        return identity.digest([self.ids, self.texts]).hex()


class WordIndex(_Index):
    """Passages by the words that they share with a query, rare words weighing more: BM25.

    S. Robertson & H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, with the inverse
    document frequency ln(1 + (N - n + 0.5) / (n + 0.5)), which is never below 0. A word is a run of letters and digits
    in any case; it is not reduced to its stem, so `rains` does not find `rain`.

    Args:
        passages: id → text, or a list, whose positions are the ids.
        k1: how slowly further occurrences of a word stop counting.
        b: how much long passages are penalised, from 0 to 1.

    Example:
        >>> index = WordIndex({"a": "Emma was written by Jane Austen.", "b": "Ulysses was written by James Joyce."})
        >>> [(found.id, round(found.score, 3)) for found in index.search("Who wrote Emma?")]
        [('a', 0.693)]
    """

    def __init__(self, passages: Mapping[str, str] | Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        super().__init__(passages)
        self.k1, self.b = k1, b
        counted = [Counter(_WORD.findall(text.casefold())) for text in self.texts]
        lengths = np.array([counts.total() for counts in counted], float)
        mean = lengths.mean() if lengths.any() else 1.0
        saturation = k1 * (1 - b + b * lengths / mean)
        occurrences: dict[str, list[tuple[int, int]]] = {}
        for at, counts in enumerate(counted):
            for word, count in counts.items():
                occurrences.setdefault(word, []).append((at, count))
        self._weights = {word: self._word_weights(places, saturation) for word, places in occurrences.items()}

    def __fingerprint__(self) -> Any:
        return ["words", 1, self.k1, self.b, self._content]

    def _word_weights(
        self, places: list[tuple[int, int]], saturation: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        """The passages that a word occurs in, and its weight in each."""
        at, counts = np.array(places, np.intp).T
        rarity = np.log1p((len(saturation) - len(at) + 0.5) / (len(at) + 0.5))
        return at, rarity * counts * (self.k1 + 1) / (counts + saturation[at])

    def _scores(self, query: str) -> npt.NDArray[np.float64]:
        scores = np.zeros(len(self))
        for word, times in Counter(_WORD.findall(query.casefold())).items():
            if word in self._weights:
                at, weights = self._weights[word]
                scores[at] += times * weights
        return scores


Embed = Callable[[Sequence[str]], Any]
"""A function that gives an array with one row for each text."""


class EmbeddingIndex(_Index):
    """Passages by the cosine between their embeddings and that of a query; only positive ones are found.

    Args:
        passages: id → text, or a list, whose positions are the ids.
        embed: gives the vectors; if not given, a small offline model of words (wordllama) of the extra `embeddings`,
            which understands English best.

    Raises:
        SpecError: `embed` is not given, and the extra is not installed.

    Example:
        >>> by_length = lambda texts: [[len(text), 1.0] for text in texts]
        >>> EmbeddingIndex(["a", "a long text"], by_length).search("as long a one", limit=1)[0].text
        'a long text'
    """

    def __init__(self, passages: Mapping[str, str] | Sequence[str], embed: Embed | None = None) -> None:
        super().__init__(passages)
        self._own = embed
        self._embed: Embed = embed or _embed_words
        if embed is None:
            require_embeddings("EmbeddingIndex")
        parts = [self.texts[at : at + _EMBEDDED_AT_ONCE] for at in range(0, len(self), _EMBEDDED_AT_ONCE)]
        self._vectors = np.concatenate([self._directions(part) for part in parts]) if parts else None

    def __fingerprint__(self) -> Any:
        return ["embeddings", 1, self._own, self._content]

    def _scores(self, query: str) -> npt.NDArray[np.float64]:
        if self._vectors is None:
            return np.zeros(0)
        return np.asarray(self._vectors @ self._directions([query])[0], float)

    def _directions(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        return directions(texts, self._embed)


def directions(texts: Sequence[str], embed: Embed | None = None) -> npt.NDArray[np.float64]:
    """A vector of length 1 for each text, so that products are cosines; of length 0 for a text without words.

    Args:
        embed: gives the vectors; the small model of `EmbeddingIndex` if not given.

    Raises:
        SpecError: `embed` gives another number of vectors, or it is not given and the extra is not installed.
    """
    if embed is None:
        require_embeddings("directions")
    vectors = np.asarray((embed or _embed_words)(texts), float)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise SpecError(f"embed gave {vectors.shape} for {len(texts)} texts; it must give one vector for each")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0))


def require_embeddings(what: str) -> None:
    """Checks that embeddings are installed.

    Args:
        what: what needs them, for the message.

    Raises:
        SpecError: the extra is not installed; the message has the command that installs it.
    """
    if find_spec("wordllama") is None:
        raise SpecError(f"{what} needs wordllama: pip install 'evaluand[embeddings]'")


def count_tokens(text: str) -> int:
    """The number of tokens of a text by the tokenizer of Llama 2, of the extra `embeddings`.

    Raises:
        SpecError: the extra is not installed.
    """
    require_embeddings("tokens")
    return len(_tokenizer().encode(text, add_special_tokens=False).ids)


def _embed_words(texts: Sequence[str]) -> Any:
    return _model().embed(list(texts))


@cache
def _tokenizer() -> Any:
    """A second tokenizer, since the model's own pads and truncates texts."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(_model().tokenizer.to_str())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _model() -> Any:
    with _loading:  # of two threads that load it at once, one would see the root logger as the other's import set it up
        return _load_model()


@cache
def _load_model() -> Any:
    root = logging.root
    handlers, level = root.handlers[:], root.level
    import wordllama  # on use: half a second, and an extra

    root.handlers[:] = handlers  # importing it makes the root logger print what every library logs
    root.setLevel(level)
    folder = Path(str(wordllama.__file__)).parent  # which holds its weights; without it they would be downloaded
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
