"""`Provider`, `Huggingface` and `GroundTruthAgreement` over `evaluand.evaluation.provider` and its local kinds.

What TruLens asks of models on the network is answered here by what runs in this process, and only where that is said:
`Huggingface(local=True)`. The models are others, and so are the numbers; `docs/howto/trulens.md` tells which is which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from evaluand.core.errors import SpecError
from evaluand.evaluation.provider import Judgement, Provider, from_0_to_1, lower_is_better
from evaluand.evaluation.providers.ground_truth import GroundTruth, Measure
from evaluand.evaluation.providers.local import Local

__all__ = ["GroundTruthAgreement", "HuggingFace", "Huggingface", "HuggingfaceLocal", "Provider"]


@dataclass(frozen=True)
class Huggingface(Local):
    """The methods of TruLens' `Huggingface`, answered by `Local`, whose own it has too.

    Args:
        name: for people.
        local: must be True: nothing here asks Hugging Face.
        k: how many places of a ranking are looked at; all if not given.

    Raises:
        SpecError: it is not said that the methods are to be answered locally.

    Example:
        >>> hugs = Huggingface(local=True)
        >>> hugs.language_match("It is raining in the hills.", "Il pleut dans les collines.").value < 0.1
        True
    """

    name: str = "huggingface"
    _: KW_ONLY
    local: bool = False

    unidentified = ("name",)

    def __post_init__(self) -> None:
        if self.local is not True:
            raise SpecError(
                f"{type(self).__name__} would ask models of Hugging Face over the network, which is not offered: say "
                f"{type(self).__name__}(local=True) to have its methods answered here, by other and smaller models"
            )
        super().__post_init__()

    @from_0_to_1
    def context_relevance(self, prompt: str, context: str) -> Judgement:
        """As that of `Local`, whose first argument is the question."""
        return super().context_relevance(prompt, context)

    @from_0_to_1
    @lower_is_better
    def toxic(self, text: str) -> Judgement:
        """As `toxicity`."""
        return self.toxicity(text)

    @from_0_to_1
    @lower_is_better
    def pii_detection(self, text: str) -> Judgement:
        """As `personal_data`."""
        return self.personal_data(text)

    @from_0_to_1
    @lower_is_better
    def pii_detection_with_cot_reasons(self, text: str) -> Judgement:
        """As `personal_data`."""
        return self.personal_data(text)

    @from_0_to_1
    def groundedness_measure_with_nli(self, source: str | Sequence[Any], statement: str) -> Judgement:
        """As `groundedness`: by embeddings, numbers and names, and not by inference."""
        return self.groundedness(_texts(source), statement)

    @from_0_to_1
    def hallucination_evaluator(self, model_output: str, retrieved_text_chunks: str | Sequence[Any]) -> Judgement:
        """As `groundedness`, with the arguments the other way round; 1 is no hallucination."""
        return self.groundedness(_texts(retrieved_text_chunks), model_output)


def _texts(source: str | Sequence[Any]) -> Any:
    """Texts, of which `collect()` may give a list for each call."""
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
    """Agreement with known answers; no model is asked whether two answers mean the same.

    Args:
        ground_truth: rows with `query` and `expected_response` (or `response`), `expected_chunks`, `expected_score`; a
            frame of such rows; or a function that gives the expected response to a question.
        provider: what TruLens asks. Here texts are compared by `measure`, so it must be local, or be left out.
        bert_scorer: must be left out.
        measure: how `agreement_measure` compares: `agreement`, `similarity`, `rouge`, `bleu` or `exact_match`.
        k: how many places of a ranking are looked at; all if not given.

    Raises:
        SpecError: there are no such rows, or another model is given.

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
    ) -> None:
        if bert_scorer is not None or not (provider is None or isinstance(provider, Local)):
            raise SpecError("GroundTruthAgreement compares by its measure here; leave out the models that it would ask")
        super().__init__(ground_truth, measure, k)

    @from_0_to_1
    def mrr(self, query: str, retrieved_context_chunks: Any) -> Judgement:
        """As `reciprocal_rank`."""
        return self.reciprocal_rank(query, retrieved_context_chunks)

    @from_0_to_1
    def ir_hit_rate(self, query: str, retrieved_context_chunks: Any) -> Judgement:
        """As `hit_rate`."""
        return self.hit_rate(query, retrieved_context_chunks)

    def bert_score(self, prompt: str, response: str) -> Judgement:
        """Raises a SpecError: it needs a model that is not here; `similarity` compares by embeddings."""
        raise SpecError(
            "bert_score needs a model that is not offered here; use similarity, which compares by embeddings"
        )
