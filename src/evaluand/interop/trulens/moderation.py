"""OpenAI's classifier of unsuitable texts, as a provider that asks a service."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from evaluand.core.errors import TaskError
from evaluand.engine.event_loop import run_coroutine
from evaluand.evaluation.provider import Judgement, RemoteProvider, Reply, asks, text_of
from evaluand.evaluation.scorer import is_number
from evaluand.models.exchange import Exchange, write_content


@dataclass(frozen=True, kw_only=True)
class Moderation(RemoteProvider):
    """The probabilities of the categories of unsuitable texts.

    Args:
        url: the address of the service up to its version.
        api_key_variable: the name of the environment variable that holds the key.
    """

    unidentified: ClassVar = (*RemoteProvider.unidentified, "url", "api_key_variable")  # type: ignore[assignment] # more of them

    url: str = "https://api.openai.com/v1"
    api_key_variable: str | None = "OPENAI_API_KEY"

    def probability(self, text: str, category: str) -> Judgement:
        """How likely a text is of a category, such as `hate/threatening`.

        Raises:
            TaskError: the service refused, or does not know the category.
        """
        scores = run_coroutine(self._scores(text_of("text", text)))
        score = scores.get(category)
        if not is_number(score):
            raise TaskError(f"the service reports no score for {category}; it reports {', '.join(scores) or 'none'}")
        return Judgement(float(score), {"reason": f"{category} has the score {score:.3g}", "category": category})

    @asks
    async def _scores(self, text: str) -> dict[str, float]:
        """Category → score. The service is free."""
        content = write_content({"model": self.model, "input": text})
        answer: Any = await self._exchange.ask(content)
        try:
            scores = dict(answer["results"][0]["category_scores"])
        except (TypeError, KeyError, IndexError, ValueError):
            raise TaskError("the answer has no category_scores, as OpenAI's moderation has", code="form") from None
        return Reply(scores, {"cost": 0.0, "currency": "USD"})  # type: ignore[return-value] # unpacked by `asks`

    @cached_property
    def _exchange(self) -> Exchange:
        return Exchange(self.url, "/moderations", self.api_key_variable, self.timeout or _LONGEST)


_LONGEST = 600.0
