"""Scores from the opinions of a model: of one question with its samples, and of the parts of a text.

If the verdict of a sample or part is missing, there is no value, since the mean of the others would mean something
else. All replies are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from evaluand.evaluation.scorer import Score
from evaluand.judges.asking import Opinion
from evaluand.judges.combination import COMBINE, agreement, most_frequent
from evaluand.judges.replies import Verdict, is_quoted
from evaluand.judges.rubric_fields import Parts

AGREEMENT: Final = "agreement"
"""The column of a judge with several samples, and of a jury: the share of pairs with equal verdicts."""


def score_of_samples(opinions: Sequence[Opinion], quoted_from: str | None = None) -> Score:
    """The score of one question: the mean of its samples, and the label that most of them have.

    Args:
        quoted_from: the text from which the judge was asked to quote.
    """
    if len(opinions) == 1:
        return _score_of(opinions[0], quoted_from)
    scores = [_score_of(opinion, quoted_from) for opinion in opinions]
    data = {"samples": [described_score(score) for score in scores]}
    missing = next((score for score in scores if score.value is None), None)
    if missing is not None:
        return abstained(missing.reason, missing.explanation, data)
    labels = [str(score.label) for score in scores]
    label = most_frequent(labels)
    explanation = next((score.explanation for score in scores if score.label == label), scores[0].explanation)
    value = COMBINE["mean"](_values(scores))
    return Score(value, label, data, explanation, columns={AGREEMENT: agreement(labels)})


def score_of_parts(parts: Parts, found: Sequence[str], scores: Sequence[Score], data: dict[str, Any]) -> Score:
    """The score of a text from those of its parts.

    Args:
        found: the parts; at least one.
        data: further data to store.
    """
    rows = zip(found, scores, strict=True)
    data = data | {"parts": [{"part": part, **described_score(score)} for part, score in rows]}
    lines = [f"{score.label or score.reason}: {part}" for part, score in zip(found, scores, strict=True)]
    missing = [score.reason for score in scores if score.value is None]
    if missing:
        return abstained(missing[0], "\n".join(lines), data)
    return Score(COMBINE[parts.combine](_values(scores)), None, data, "\n".join(lines))


def abstained(reason: str | None, explanation: str | None, data: Any) -> Score:
    """A score without a value, with the reply."""
    return Score(None, None, data, explanation, "abstained", reason)


def described_score(score: Score) -> dict[str, Any]:
    """A score within the data of another one."""
    own = {"value": score.value, "label": score.label, "explanation": score.explanation, "reason": score.reason}
    return {name: value for name, value in own.items() if value is not None} | (score.data or {})


def _score_of(opinion: Opinion, quoted_from: str | None) -> Score:
    data = opinion.data
    if quoted_from is not None and isinstance(opinion.verdict, Verdict) and opinion.verdict.evidence:
        data["quoted"] = is_quoted(opinion.verdict.evidence, quoted_from)
    status = "abstained" if opinion.value is None else "scored"
    return Score(opinion.value, opinion.label, data, opinion.explanation, status, opinion.reason)


def _values(scores: Sequence[Score]) -> list[float]:
    return [score.value for score in scores if score.value is not None]
