"""All providers that need neither a key nor a network, as one."""

from dataclasses import dataclass

from evaluand.evaluation.providers.agreement import Agreement
from evaluand.evaluation.providers.embeddings import Embeddings
from evaluand.evaluation.providers.english import Sentiment, Toxicity
from evaluand.evaluation.providers.languages import Languages
from evaluand.evaluation.providers.personal_data import PersonalData
from evaluand.evaluation.providers.readability import Readability


@dataclass(frozen=True)
class Local(Agreement, Embeddings, Languages, PersonalData, Readability, Sentiment, Toxicity):
    """The methods of all providers that need nothing but their texts.

    Each method checks its extra on use; an error names the command that installs a missing one.

    Args:
        k: how many places of a ranking count; all by default.
        max_characters: how long each argument may be, in place of the methods' own limits.

    Example:
        >>> Local().context_relevance("Who wrote Emma?", "Emma was written by Jane Austen.").value > 0.5
        True
    """

    kind = "local"
