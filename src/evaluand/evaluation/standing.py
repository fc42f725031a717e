"""Whether scores may decide: those that are opinions err, and how often must have been measured.

A scorer whose verdicts are opinions (`Scorer.is_judge`) is named in the manifest. Its class, found by the stored kind,
says whether it was measured: `Scorer.standing` and, of who compares responses, `ComparisonScorer.standings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from evaluand.core.errors import plural
from evaluand.evaluation.scorer import class_of
from evaluand.metrics.judging.estimate import Estimate, rogan_gladen

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation

Status = Literal["measured", "weak", "stale", "unmeasured"]


class ScorerStanding(Protocol):
    """Whether a scorer was measured on labels by people."""

    @property
    def name(self) -> str:
        """That of the scorer."""

    @property
    def digest(self) -> str:
        """Identifies the scorer in its present form."""

    @property
    def status(self) -> Status:
        """`weak` if too little was measured, `stale` if only an earlier form was."""

    @property
    def card_id(self) -> str | None:
        """The id of what was measured."""

    @property
    def changed(self) -> Sequence[str]:
        """The changes since an earlier form was measured, in words."""

    @property
    def finding(self) -> str:
        """The standing in a few words."""

    @property
    def remedy(self) -> str:
        """How to measure it."""

    @property
    def text(self) -> str:
        """The standing in one line, with what to do if too little was measured."""

    def correct(self, evaluation: Evaluation, scorer: str) -> CorrectedMean | None:
        """The mean of the scorer in an evaluation, corrected for its measured errors; None where they are unknown."""


class CorrectedMean(NamedTuple):
    """The share of answers that a judge accepts, and the share that is right if it errs as it was measured to.

    Attributes:
        raw: the share that the judge accepts.
        rates: sensitivity and specificity of the judge.
        confidence: of the intervals.
        is_mean: whether `raw` is the mean of the judge's values, so that these are 0 and 1.
        labelled: how many of the answers were used to measure the judge; their random error counts twice.
        measured_on: how many answers were used to measure the judge.
    """

    raw: Estimate
    rates: tuple[Estimate, Estimate]
    confidence: float
    is_mean: bool
    labelled: int
    measured_on: int

    @property
    def corrected(self) -> Estimate:
        """The share that is right."""
        return self.at(self.confidence)

    def at(self, confidence: float) -> Estimate:
        """The same with an interval of another confidence."""
        return rogan_gladen(self.raw, *self.rates, confidence=confidence)

    @property
    def overlap(self) -> str:
        """The note on the interval if some of these answers were used to measure the judge; else empty."""
        if not self.labelled:
            return ""
        several = "" if self.labelled == self.measured_on else f"{self.labelled:,} of "
        return f" (includes {several}the {plural(self.measured_on, 'labelled answer')}: interval too wide)"


def scorer_standings(evaluation: Evaluation) -> dict[str, ScorerStanding]:
    """The standing of each scorer of an evaluation whose verdicts are opinions, by name."""
    specs = evaluation.manifest["spec"]["scorers"]
    names = [name for name in evaluation.manifest["provenance"].get("judges") or () if name in evaluation.scorers]
    return {name: class_of("scorers", specs[name]).standing(evaluation, name) for name in names}
