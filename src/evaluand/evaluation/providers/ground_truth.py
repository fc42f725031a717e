"""Agreement with a table of expected answers, looked up by question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from evaluand.core.errors import DataError, SpecError, kind_of
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.identity import encode
from evaluand.evaluation.local_provider import LocalProvider
from evaluand.evaluation.provider import Judgement, from_0_to_1, lower_is_better, quoted, text_of
from evaluand.evaluation.providers.agreement import Agreement
from evaluand.evaluation.providers.embeddings import Embeddings

Measure = Literal["agreement", "exact_match", "bleu", "rouge", "similarity"]
Truths = Sequence[Mapping[str, Any]] | Callable[[str], Any]


@dataclass(frozen=True)
class GroundTruth(LocalProvider):
    """Judges answers to questions whose right answers are known.

    If the examples of a dataset have an expected output, use `Agreement` without a table: select
    `__example__.expected`.

    Args:
        ground_truth: the expected answers: rows with `query` and any of `expected_response` (or `response`: a text, or
            several of which any counts), `expected_chunks` (the texts to retrieve: a list of texts, of objects with
            `text` and `expected_score` or `expect_score`, or an object text → relevance) and `expected_score`; a frame
            of such rows; or a function from a question to the expected response.
        measure: how `agreement_measure` compares: `agreement` (of meaning, numbers, names and negation) or `similarity`
            (of meaning alone; the extra `embeddings`), `rouge`, `bleu` (the extra `text`) or `exact_match`.
        k: how many places of a ranking count; all by default.
        max_characters: how long each argument may be, in place of the methods' own limits.

    Raises:
        SpecError: a row is invalid, a question has two different answers, a chunk has two scores, the measure is
            unknown, or k is not an integer of at least 1.

    Example:
        >>> known = [{"query": "Who wrote Emma?", "expected_response": "Jane Austen"}]
        >>> truth = GroundTruth(known, measure="exact_match")
        >>> truth.agreement_measure("Who wrote Emma?", "jane austen").value
        1.0
        >>> truth.agreement_measure("Who wrote Ulysses?", "James Joyce").reason
        'nothing is known of “Who wrote Ulysses?”'
    """

    kind = "ground_truth"

    ground_truth: Truths
    measure: Measure = "agreement"
    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if hasattr(self.ground_truth, "to_dict"):  # a frame
            object.__setattr__(self, "ground_truth", _frame_rows(self.ground_truth))
        _ = self._agreement, self._rows

    def identify(self, method: str) -> Identity:
        if not callable(self.ground_truth):
            return super().identify(method)
        return code_identity("provider", self, method=method)

    @from_0_to_1
    def agreement_measure(self, prompt: str, response: str) -> Judgement:
        """Agreement of a response with the expected one, by the chosen measure."""
        judged: Judgement = getattr(self, self.measure)(prompt, response)
        return judged

    @from_0_to_1
    def agreement(self, prompt: str, response: str) -> Judgement:
        """`Embeddings.agreement` of a response with the expected one and the question; the extra `embeddings`."""
        return self._compare(
            prompt, response, lambda said, expected: self._embeddings.agreement(said, expected, prompt)
        )

    @from_0_to_1
    def exact_match(self, prompt: str, response: str) -> Judgement:
        """1 if a response equals the expected one, else 0; regardless of case, width and runs of white space."""
        return self._compare(prompt, response, self._agreement.exact_match)

    @from_0_to_1
    def bleu(self, prompt: str, response: str) -> Judgement:
        """sacreBLEU's score of a sentence, from 0 to 1; the extra `text`."""
        return self._compare(prompt, response, self._agreement.bleu)

    @from_0_to_1
    def rouge(self, prompt: str, response: str) -> Judgement:
        """The F1 of ROUGE-L; the extra `text`."""
        return self._compare(prompt, response, self._agreement.rouge)

    @from_0_to_1
    def similarity(self, prompt: str, response: str) -> Judgement:
        """The cosine between the embeddings of a response and the nearest expected one; the extra `embeddings`."""
        return self._compare(prompt, response, self._most_similar)

    @lower_is_better
    def absolute_error(self, prompt: str, response: str, score: float) -> Judgement:
        """The absolute difference between the score of a response and the expected score.

        Its mean is the mean absolute error. If several rows have the question, the one with that response counts.
        """
        row = self._row(prompt, response)
        if row is None or row.get("expected_score") is None:
            return Judgement.undefined(f"no score is expected of {quoted(prompt)}")
        return self._agreement.absolute_error(score, row["expected_score"])

    @from_0_to_1
    def ndcg_at_k(self, query: str, retrieved_context_chunks: Any) -> Judgement:
        """Normalised discounted cumulative gain of the retrieved chunks."""
        return self._retrieved("ndcg_at_k", query, retrieved_context_chunks)

    @from_0_to_1
    def precision_at_k(self, query: str, retrieved_context_chunks: Any) -> Judgement:
        """The share of places with a relevant chunk."""
        return self._retrieved("precision_at_k", query, retrieved_context_chunks)

    @from_0_to_1
    def recall_at_k(self, query: str, retrieved_context_chunks: Any) -> Judgement:
        """The share of relevant chunks that were retrieved."""
        return self._retrieved("recall_at_k", query, retrieved_context_chunks)

    @from_0_to_1
    def hit_rate(self, query: str, retrieved_context_chunks: Any) -> Judgement:
        """1 if any relevant chunk was retrieved, else 0."""
        return self._retrieved("hit_rate", query, retrieved_context_chunks)

    @from_0_to_1
    def reciprocal_rank(self, query: str, retrieved_context_chunks: Any) -> Judgement:
        """1 / the place of the first relevant chunk, 0 without one."""
        return self._retrieved("reciprocal_rank", query, retrieved_context_chunks)

    @cached_property
    def _agreement(self) -> Agreement:
        return Agreement(k=self.k, max_characters=self.max_characters)

    @cached_property
    def _embeddings(self) -> Embeddings:
        return Embeddings(max_characters=self.max_characters)

    @cached_property
    def _rows(self) -> Mapping[str, list[Mapping[str, Any]]]:
        """The rows of each question."""
        if callable(self.ground_truth):
            return {}
        rows: dict[str, list[Mapping[str, Any]]] = {}
        given: Any = self.ground_truth
        if not isinstance(given, list | tuple):
            problem = f"ground_truth is {kind_of(given)}"
            raise SpecError(f"{problem}; give rows with query and expected_response, or a function")
        for number, row in enumerate(given):
            query = row.get("query") if isinstance(row, Mapping) else None
            if not isinstance(query, str):
                what = f"{kind_of(row)} without a query"
                raise SpecError(f"row {number} of the ground truth is {what}; give query and expected_response")
            _relevance(row.get("expected_chunks"), f"row {number} of the ground truth")
            rows.setdefault(query, []).append(row)
        for query, several in rows.items():
            if any(len({encode(row.get(name)) for row in several}) > 1 for name in _ONCE) and not _graded(several):
                problem = f"the ground truth has {quoted(query)} {len(several)} times"
                raise SpecError(f"{problem}; give several expected texts as a list")
        return rows

    def _row(self, query: str, response: str | None = None) -> Mapping[str, Any] | None:
        rows = self._rows.get(text_of("query", query), [])
        exact = (row for row in rows if response is not None and _response(row) == response)
        return next(exact, rows[0] if rows else None)

    def _expected(self, prompt: str) -> Any:
        if callable(self.ground_truth):
            return self.ground_truth(prompt)
        row = self._row(prompt)
        return None if row is None else _response(row)

    def _compare(self, prompt: str, response: str, compare: Callable[[str, Any], Judgement]) -> Judgement:
        expected = self._expected(prompt)
        if expected is None:
            return Judgement.undefined(f"nothing is known of {quoted(prompt)}")
        return compare(text_of("response", response), expected)

    def _most_similar(self, response: str, expected: Any) -> Judgement:
        texts = [expected] if isinstance(expected, str) else expected
        if not isinstance(texts, list | tuple) or not texts:
            raise DataError(f"the expected response is {kind_of(expected)}, not a text or a list of texts")
        judged = [self._embeddings.similarity(response, text_of("expected_response", text)) for text in texts]
        return max(judged, key=lambda one: -1.0 if one.value is None else one.value)

    def _retrieved(self, measure: str, query: str, retrieved: Any, k: int | None = None) -> Judgement:
        """A measure of a ranking; `k` replaces that of the provider."""
        row = self._row(query)
        if row is None or row.get("expected_chunks") is None:
            return Judgement.undefined(f"nothing is known of what is to be retrieved for {quoted(query)}")
        agreement = self._agreement if k is None else Agreement(k=k, max_characters=self.max_characters)
        judged: Judgement = getattr(agreement, measure)(
            retrieved, _relevance(row["expected_chunks"], "the ground truth")
        )
        return judged


_ONCE: Final = ("expected_response", "response", "expected_chunks")


def _graded(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the rows are several responses to one question, each with its score."""
    return all("expected_score" in row for row in rows)


def _response(row: Mapping[str, Any]) -> Any:
    return row.get("expected_response", row.get("response"))


def _frame_rows(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame, without missing cells."""
    objects = frame.astype(object)
    rows = objects.where(objects.notna(), None).to_dict("records")
    return [{name: _plain_data(value) for name, value in row.items() if value is not None} for row in rows]


def _plain_data(value: Any) -> Any:
    """A cell as plain data: frames read from Parquet hold lists as arrays."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return {key: _plain_data(item) for key, item in value.items() if item is not None}
    return [_plain_data(item) for item in value] if isinstance(value, list | tuple) else value


def _relevance(chunks: Any, where: str) -> Any:
    """The relevant chunks; those with scores as an object text → relevance."""
    if not isinstance(chunks, list) or not chunks:
        return chunks
    if not all(isinstance(one, Mapping) and isinstance(one.get("text"), str) for one in chunks):
        return chunks
    scores: dict[str, Any] = {}
    for one in chunks:
        text, score = one["text"], one.get("expected_score", one.get("expect_score", 1.0))
        if scores.setdefault(text, score) != score:
            raise SpecError(f"{where} expects {quoted(text)} with the scores {scores[text]} and {score}; give it once")
    return scores
