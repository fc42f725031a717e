"""The classifiers that TruLens' `Huggingface` asks, at Hugging Face's address for inference or at yours."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from evaluand.core.errors import SpecError, TaskError, alternatives
from evaluand.core.text.sentences import sentences
from evaluand.engine.event_loop import run_coroutine
from evaluand.evaluation.judgement import Judgement
from evaluand.evaluation.provider import RemoteProvider, Reply, asks, from_0_to_1, lower_is_better, text_of
from evaluand.evaluation.scorer import is_number
from evaluand.models.exchange import Exchange, write_content

MODELS: Final[Mapping[str, str]] = {
    "language": "papluca/xlm-roberta-base-language-detection",
    "sentiment": "cardiffnlp/twitter-roberta-base-sentiment",
    "toxicity": "martin-ha/toxic-comment-model",
    "context_relevance": "truera/context_relevance",
    "inference": "MoritzLaurer/DeBERTa-v3-base-mnli-fever-docnli-ling-2c",
    "hallucination": "vectara/hallucination_evaluation_model",
    "personal_data": "bigcode/starpii",
}
"""What is classified → the model that TruLens asks."""


@dataclass(frozen=True, kw_only=True)
class HuggingfaceInference(RemoteProvider):
    """The methods of TruLens' `Huggingface`, answered by its models over HTTP.

    Args:
        base_url: where the models are, each under its name.
        api_key_variable: the name of the environment variable that holds the key.
        models: what is classified → another model, of `MODELS`.
        name: for people.

    Raises:
        SpecError: a parameter is invalid.

    Example:
        >>> HuggingfaceInference(models={"toxicity": "unitary/toxic-bert"}).model_of("toxicity")
        'unitary/toxic-bert'
    """

    unidentified: ClassVar = (  # type: ignore[assignment] # more of them
        *RemoteProvider.unidentified,
        "base_url",
        "api_key_variable",
        "name",
    )

    base_url: str = "https://router.huggingface.co/hf-inference/models"
    api_key_variable: str | None = "HF_TOKEN"
    models: Mapping[str, str] | None = None
    name: str = "huggingface"

    def __post_init__(self) -> None:
        super().__post_init__()
        for task in self.models or {}:
            if task not in MODELS:
                raise SpecError(f"models: {task} is nothing that is classified{alternatives(task, list(MODELS))}")
        _ = self._exchanges  # now, so that a provider of a file sends keys only where the user allows it

    def model_of(self, task: str) -> str:
        """The model that classifies something of `MODELS`."""
        return {**MODELS, **(self.models or {})}[task]

    @from_0_to_1
    def language_match(self, text1: str, text2: str) -> Judgement:
        """Whether two texts are in one language: 1 − ½ Σ |p₁ − p₂| of the probabilities of languages."""
        first, second = run_coroutine(self._several("language", [text_of("text1", text1), text_of("text2", text2)]))
        names = {*first, *second}
        value = 1 - math.fsum(abs(first.get(name, 0.0) - second.get(name, 0.0)) for name in names) / 2
        likeliest = [max(each, key=lambda name: each[name]) for each in (first, second)]
        reason = f"the likeliest languages are {likeliest[0]} and {likeliest[1]}"
        return Judgement(min(max(value, 0.0), 1.0), {"reason": reason})

    @from_0_to_1
    def positive_sentiment(self, text: str) -> Judgement:
        """How likely a text is positive."""
        return self._probability("sentiment", text_of("text", text), ("positive", "LABEL_2"))

    @from_0_to_1
    @lower_is_better
    def toxic(self, text: str) -> Judgement:
        """How likely a text is toxic."""
        return self._probability("toxicity", text_of("text", text), ("toxic",))

    @from_0_to_1
    def context_relevance(self, prompt: str, context: str) -> Judgement:
        """How likely a context is relevant to a prompt."""
        pair = _pair(text_of("prompt", prompt), text_of("context", context))
        return self._probability("context_relevance", pair, ("context_relevance", "relevant", "LABEL_1"))

    @from_0_to_1
    def hallucination_evaluator(self, model_output: str, retrieved_text_chunks: str) -> Judgement:
        """How likely a text is consistent with its source; 1 means no hallucination."""
        pair = _pair(text_of("retrieved_text_chunks", retrieved_text_chunks), text_of("model_output", model_output))
        return self._probability("hallucination", pair, ("consistent", "LABEL_1"))

    @from_0_to_1
    def groundedness_measure_with_nli(self, source: str, statement: str) -> Judgement:
        """The mean over the sentences of a statement of how likely its source entails each."""
        found = [each.text for each in sentences(text_of("statement", statement))]
        if not found:
            return Judgement.undefined("no sentence in the statement")
        pairs = [_pair(text_of("source", source), each) for each in found]
        labels = run_coroutine(self._several("inference", pairs))
        scores = [_score_of(each, ("entailment",)) for each in labels]
        reasons = [{"criteria": part, "score": score} for part, score in zip(found, scores, strict=True)]
        reason = "\n".join(f"{score:.2f}: {part}" for part, score in zip(found, scores, strict=True))
        return Judgement(math.fsum(scores) / len(scores), {"reason": reason, "reasons": reasons})

    @from_0_to_1
    @lower_is_better
    def pii_detection(self, text: str) -> Judgement:
        """The score of the likeliest personal data in a text; 0 if none is found."""
        found = run_coroutine(self._entities(self.model_of("personal_data"), text_of("text", text)))
        if not found:
            return Judgement(0.0, {"reason": "no personal data is found"})
        kinds = ", ".join(sorted({kind for kind, _ in found}))
        return Judgement(max(score for _, score in found), {"reason": f"found: {kinds}"})

    @from_0_to_1
    @lower_is_better
    def pii_detection_with_cot_reasons(self, text: str) -> Judgement:
        """The same as `pii_detection`."""
        return self.pii_detection(text)

    def _probability(self, task: str, inputs: Any, labels: Sequence[str]) -> Judgement:
        """The score of the first label that the model knows."""
        (found,) = run_coroutine(self._several(task, [inputs]))
        score = _score_of(found, labels)
        return Judgement(score, {"reason": f"{self.model_of(task)} gives {score:.3g}"})

    async def _several(self, task: str, inputs: Sequence[Any]) -> list[dict[str, float]]:
        return await asyncio.gather(*(self._labels(self.model_of(task), each) for each in inputs))

    @asks
    async def _labels(self, model: str, inputs: Any) -> dict[str, float]:
        """Label → score."""
        answer = await self._ask(model, {"inputs": inputs, "parameters": {"top_k": None}})
        answer = answer[0] if isinstance(answer, list) and answer and isinstance(answer[0], list) else answer
        try:
            scores = {str(each["label"]): float(each["score"]) for each in answer}
        except (TypeError, KeyError, ValueError):
            scores = {}
        if not scores:
            raise TaskError(f"{model} did not answer with labels and their scores", code="form")
        return Reply(scores, {"model": model})  # type: ignore[return-value] # unpacked by `asks`

    @asks
    async def _entities(self, model: str, text: str) -> list[list[Any]]:
        """Kind and score of each, without the words."""
        answer = await self._ask(model, {"inputs": text})
        try:
            found = [[str(each.get("entity_group") or each["entity"]), float(each["score"])] for each in answer]
        except (TypeError, KeyError, ValueError, AttributeError):
            raise TaskError(f"{model} did not answer with entities and their scores", code="form") from None
        return Reply(found, {"model": model})  # type: ignore[return-value]

    async def _ask(self, model: str, body: Mapping[str, Any]) -> Any:
        return await self._exchanges[model].ask(write_content(body))

    @cached_property
    def _exchanges(self) -> Mapping[str, Exchange]:
        """Model → where it answers."""
        base, seconds = self.base_url.rstrip("/"), self.timeout or _LONGEST
        names = {self.model_of(task) for task in MODELS}
        return {name: Exchange(f"{base}/{name}", "", self.api_key_variable, seconds) for name in names}


def _pair(text: str, other: str) -> dict[str, str]:
    return {"text": text, "text_pair": other}


def _score_of(found: Mapping[str, float], labels: Sequence[str]) -> float:
    known = {label.casefold(): score for label, score in found.items()}
    score = next((known[label.casefold()] for label in labels if label.casefold() in known), None)
    if not is_number(score) or not 0 <= float(score) <= 1:
        raise TaskError(f"the model gives no probability of {' or '.join(labels)}; it gives {', '.join(found)}")
    return float(score)


_LONGEST: Final = 600.0
