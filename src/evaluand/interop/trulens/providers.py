"""`Provider`, `Huggingface` and `GroundTruthAgreement` over `evaluand.evaluation.provider` and the local providers.

`Huggingface()` asks the models that TruLens asks, over the network. `Huggingface(local=True)` runs smaller models in
this process, whose scores differ; `docs/howto/trulens.md` lists them.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import partial
from typing import Any

from evaluand.core.errors import SpecError
from evaluand.evaluation.provider import Judgement, from_0_to_1, lower_is_better
from evaluand.evaluation.providers.agreement import ranked
from evaluand.evaluation.providers.ground_truth import GroundTruth, Measure
from evaluand.evaluation.providers.local import Local
from evaluand.interop.trulens.huggingface_inference import HuggingfaceInference
from evaluand.interop.trulens.provider import Provider as Provider

Scores = Sequence[float] | None


@dataclass(frozen=True)
class Huggingface(Local):
    """The methods of TruLens' `Huggingface`, computed by `Local`, and the methods of `Local`.

    Args:
        name: for people.
        local: whether to run in this process. Otherwise what is made is a `HuggingfaceInference`, with its parameters.
        k: the number of places of a ranking to consider; default: all.
        max_characters: how long each argument may be, in place of the methods' own limits.

    Example:
        >>> hugs = Huggingface(local=True)
        >>> hugs.language_match("It is raining in the hills.", "Il pleut dans les collines.").value < 0.1
        True
    """

    name: str = "huggingface"
    _: KW_ONLY
    local: bool = False

    unidentified = ("name",)

    def __new__(cls, name: str = "huggingface", *, local: bool | None = None, **parameters: Any) -> Any:
        if not isinstance(local, bool | None):
            raise SpecError(f"local is {local!r}; give True or False")
        if cls.__name__ == "Huggingface" and not local:
            return HuggingfaceInference(name=name, **parameters)
        return super().__new__(cls)

    def __reduce__(self) -> Any:
        """Copied by its parameters, because `__new__` without any makes something else."""
        return partial(type(self), **{each.name: getattr(self, each.name) for each in fields(self) if each.init}), ()

    @from_0_to_1
    def context_relevance(self, prompt: str, context: str) -> Judgement:
        """The same as in `Local`, where the first argument is called `question`."""
        return super().context_relevance(prompt, context)

    @from_0_to_1
    @lower_is_better
    def toxic(self, text: str) -> Judgement:
        """The same as `toxicity`."""
        return self.toxicity(text)

    @from_0_to_1
    @lower_is_better
    def pii_detection(self, text: str) -> Judgement:
        """The same as `personal_data`."""
        return self.personal_data(text)

    @from_0_to_1
    @lower_is_better
    def pii_detection_with_cot_reasons(self, text: str) -> Judgement:
        """The same as `personal_data`."""
        return self.personal_data(text)

    @from_0_to_1
    def groundedness_measure_with_nli(self, source: str | Sequence[Any], statement: str) -> Judgement:
        """The same as `groundedness`: by embeddings, numbers and names, not by inference."""
        return self.groundedness(_flat_texts(source), statement)

    @from_0_to_1
    def hallucination_evaluator(self, model_output: str, retrieved_text_chunks: str | Sequence[Any]) -> Judgement:
        """The same as `groundedness` with the arguments swapped; 1 means no hallucination."""
        return self.groundedness(_flat_texts(retrieved_text_chunks), model_output)


def _flat_texts(source: str | Sequence[Any]) -> Any:
    """One list of texts; `collect()` may give a list of texts per call."""
    if isinstance(source, str):
        return source
    return [text for each in source for text in (each if isinstance(each, list) else [each])]


@dataclass(frozen=True)
class HuggingfaceLocal(Huggingface):
    """`Huggingface(local=True)`."""

    name: str = "huggingface_local"
    _: KW_ONLY
    local: bool = True


HuggingFace = Huggingface


class GroundTruthAgreement(GroundTruth):
    """Agreement with known answers, compared by a measure and not by a language model.

    Args:
        ground_truth: rows with `query` and `expected_response` (or `response`), `expected_chunks`, `expected_score`; a
            frame of such rows; or a function that returns the expected response to a question.
        provider: the model that TruLens would call; must be a local provider or None, because `measure` compares texts.
        bert_scorer: must be None.
        measure: how `agreement_measure` compares: `agreement`, `similarity`, `rouge`, `bleu` or `exact_match`.
        k: the number of places of a ranking to consider; default: all.
        max_characters: how long each argument may be, in place of the methods' own limits.

    Raises:
        SpecError: `ground_truth` has no such rows, or a model is passed.

    Example:
        >>> truth = GroundTruthAgreement([{"query": "Who wrote Emma?", "expected_response": "Jane Austen"}])
        >>> truth.agreement_measure("Who wrote Emma?", "It was Jane Austen.").value > 0.5
        True
    """

    def __init__(
        self,
        ground_truth: Any,
        provider: Any = None,
        bert_scorer: Any = None,
        *,
        measure: Measure = "agreement",
        k: int | None = None,
        max_characters: int | None = None,
    ) -> None:
        if bert_scorer is not None or not (provider is None or isinstance(provider, Local)):
            raise SpecError(
                "GroundTruthAgreement compares by its measure and calls no model; omit provider and bert_scorer"
            )
        super().__init__(ground_truth, measure, k, max_characters=max_characters)

    @from_0_to_1
    def ndcg_at_k(
        self, query: str, retrieved_context_chunks: Any, relevance_scores: Scores = None, k: int | None = None
    ) -> Judgement:
        """Normalised discounted cumulative gain of the retrieved chunks.

        Args:
            query: the question.
            retrieved_context_chunks: the chunks, best first.
            relevance_scores: the retriever's score of each chunk; the chunks are then ranked by it.
            k: the number of places to consider; default: that of the provider.
        """
        return self._retrieved("ndcg_at_k", query, ranked(retrieved_context_chunks, relevance_scores), k)

    @from_0_to_1
    def precision_at_k(
        self, query: str, retrieved_context_chunks: Any, relevance_scores: Scores = None, k: int | None = None
    ) -> Judgement:
        """The share of places with a relevant chunk.

        Args:
            query: the question.
            retrieved_context_chunks: the chunks, best first.
            relevance_scores: the retriever's score of each chunk; the chunks are then ranked by it.
            k: the number of places to consider; default: that of the provider.
        """
        return self._retrieved("precision_at_k", query, ranked(retrieved_context_chunks, relevance_scores), k)

    @from_0_to_1
    def recall_at_k(
        self, query: str, retrieved_context_chunks: Any, relevance_scores: Scores = None, k: int | None = None
    ) -> Judgement:
        """The share of relevant chunks that were retrieved.

        Args:
            query: the question.
            retrieved_context_chunks: the chunks, best first.
            relevance_scores: the retriever's score of each chunk; the chunks are then ranked by it.
            k: the number of places to consider; default: that of the provider.
        """
        return self._retrieved("recall_at_k", query, ranked(retrieved_context_chunks, relevance_scores), k)

    @from_0_to_1
    def mrr(self, query: str, retrieved_context_chunks: Any, relevance_scores: Scores = None) -> Judgement:
        """The same as `reciprocal_rank`, of the chunks ranked by `relevance_scores` if there are any."""
        return self._retrieved("reciprocal_rank", query, ranked(retrieved_context_chunks, relevance_scores))

    @from_0_to_1
    def ir_hit_rate(self, query: str, retrieved_context_chunks: Any, k: int | None = None) -> Judgement:
        """The same as `hit_rate`, within the first `k` places."""
        return self._retrieved("hit_rate", query, retrieved_context_chunks, k)

    def bert_score(self, prompt: str, response: str) -> Judgement:
        """Raise a SpecError: it needs a model that evaluand does not offer; `similarity` compares by embeddings."""
        raise SpecError(
            "bert_score needs a model that evaluand does not offer; use similarity, which compares by embeddings"
        )
