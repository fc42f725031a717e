"""The share of right answers behind the verdicts of a judge that errs at known rates."""

from __future__ import annotations

import math

import numpy as np

from evaluand.metrics.judging.estimate import Estimate, undefined
from evaluand.metrics.stats.intervals import normal_quantile


def rogan_gladen(raw: Estimate, sensitivity: Estimate, specificity: Estimate, *, confidence: float = 0.95) -> Estimate:
    """The true share of right answers, from the share that a judge takes for right.

    It is (raw + specificity − 1) / (sensitivity + specificity − 1), within 0 and 1. The interval allows for the chance
    in all three shares. It assumes that the judge errs on these answers as often as on those that people have labelled,
    whatever their share of right ones, and that these are other answers than those that people have labelled.
    Source: W. Rogan & B. Gladen, "Estimating prevalence from the results of a screening test" (American Journal of
    Epidemiology 107, 1978); Z. Lang & J. Reiczigel, "Confidence limits for prevalence of disease adjusted for estimated
    sensitivity and specificity" (Preventive Veterinary Medicine 113, 2014) for the interval.

    Args:
        raw: the share that the judge takes for right.
        sensitivity: the share of right answers that the judge takes for right, on a labelled set.
        specificity: the share of wrong answers that the judge takes for wrong.
        confidence: of the interval.

    Returns:
        NaN, with the reason, where the judge is not shown to be better than chance, or where it takes more
        answers for right than it would if all were right, or fewer than if none was, by more than chance.

    Example:
        >>> found = rogan_gladen(
        ...     Estimate(0.6, 0, 0, 500, 500), Estimate(0.9, 0, 0, 100, 100), Estimate(0.8, 0, 0, 100, 100)
        ... )
        >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
        (0.571, 0.478, 0.666)
    """
    parts = (raw, sensitivity, specificity)
    lacking = next((each for each in parts if math.isnan(each.value)), None)
    if lacking is not None:
        return undefined(lacking.reason or "a share is undefined", raw.n)
    z = normal_quantile(confidence)
    p, rows = _shrink(raw, z * z / 2)
    found, (se, n_right), (sp, n_wrong) = raw.value, _shrink(sensitivity, 1.0), _shrink(specificity, 1.0)
    of_right, of_wrong = se * (1 - se) / n_right, sp * (1 - sp) / n_wrong
    if se + sp - 1 <= z * math.sqrt(of_right + of_wrong):
        return undefined("the judge is not shown to be better than chance, so nothing can be corrected", raw.n)
    value = (found + specificity.value - 1) / (sensitivity.value + specificity.value - 1)
    middle = (p + sp - 1) / (se + sp - 1)
    shift = 2 * z * z * (middle * of_right - (1 - middle) * of_wrong)
    variance = p * (1 - p) / rows + middle**2 * of_right + (1 - middle) ** 2 * of_wrong
    half = z * math.sqrt(variance) / (se + sp - 1)
    low, high = middle + shift - half, middle + shift + half
    most, least = sensitivity.value, 1 - specificity.value  # what it takes for right where all are right, or none is
    if (low > 1 and found > most) or (high < 0 and found < least):
        return undefined(_explain_contradiction(found, most, least), raw.n)
    value, low, high = (float(np.clip(each, 0.0, 1.0)) for each in (value, low, high))
    return Estimate(value, low, high, raw.n, raw.effective)


def _explain_contradiction(found: float, most: float, least: float) -> str:
    """Why no true share explains what a judge found.

    Args:
        most: the share that it takes for right where all answers are right, `least` where none is.
    """
    beyond = (
        f"more than the {most:.3g} of right answers" if found > most else f"less than the {least:.3g} of wrong ones"
    )
    return (
        f"the judge takes {found:.3g} of these answers for right, {beyond} that people have labelled,"
        " so it probably errs otherwise here than there, and nothing can be corrected"
    )


def _shrink(share: Estimate, rows: float) -> tuple[float, float]:
    """A share after so many more right and as many more wrong rows, and the number of rows that it depends on."""
    n = share.effective
    return (share.value * n + rows) / (n + 2 * rows), n + 2 * rows
