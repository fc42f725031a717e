"""All that judges without a key or a network, as one provider."""

from __future__ import annotations

from dataclasses import dataclass

from evaluand.evaluation.providers.agreement import Agreement
from evaluand.evaluation.providers.embeddings import Embeddings
from evaluand.evaluation.providers.languages import Languages
from evaluand.evaluation.providers.personal_data import PersonalData
from evaluand.evaluation.providers.readability import Readability
from evaluand.evaluation.providers.sentiment import Sentiment
from evaluand.evaluation.providers.toxicity import Toxicity


@dataclass(frozen=True)
class Local(Agreement, Embeddings, Languages, PersonalData, Readability, Sentiment, Toxicity):
    """The methods of all kinds that need nothing but their texts.

    What a method needs is looked at when it is used: an extra that is not installed is named with its command.

    Args:
        k: how many places of a ranking are looked at; all if not given.

    Example:
        >>> Local().context_relevance("Who wrote Emma?", "Emma was written by Jane Austen.").value > 0.5
        True
    """

    kind = "local"
