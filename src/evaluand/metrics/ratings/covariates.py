"""Strengths freed from length, style or position: Bradley–Terry as a logistic regression.

The log-odds that `a` beats `b` are the difference of their strengths plus, for each covariate, a coefficient times how
much more of it `a` has in this match. So a strength is what remains when both responses are equally long, equally
marked up, or both first. Ties are half a win; an outcome may be a probability.
Source: W. L. Li, A. Angelopoulos & W.-L. Chiang, "Does style matter? Disentangling style and substance in Chatbot
Arena" (2024); for errors by example see `standard_errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.bradley_terry import logistic
from evaluand.metrics.ratings.counts import MatchRows, connect, count_matches, largest_component
from evaluand.metrics.ratings.strength_intervals import sum_scores
from evaluand.metrics.stats.intervals import t_quantile
from evaluand.metrics.stats.resampling import Units


class CovariateFit(NamedTuple):
    """Strengths at equal covariates, and what each covariate contributes.

    Attributes:
        strength: of each system, in log-odds with mean 0; NaN for systems that are not `rated`.
        rated: the systems of the largest component; with a penalty all with matches.
        coefficient: of each covariate, the log-odds for one unit more; NaN where there is a reason.
        reasons: why a covariate has no coefficient, else None.
        strength_error: the standard error of each strength, from the spread between examples.
        coefficient_error: the standard error of each coefficient.
        difference_error: systems × systems: the standard error of the difference of two strengths.
        examples: the number of examples.
        converged: false where matches and covariates have no finite estimate; then all values are NaN.
    """

    strength: np.ndarray
    rated: np.ndarray
    coefficient: np.ndarray
    reasons: tuple[str | None, ...]
    strength_error: np.ndarray
    coefficient_error: np.ndarray
    difference_error: np.ndarray
    examples: int
    converged: bool

    def quantile(self, confidence: float) -> float:
        """The number of standard errors to either end of an interval: Student's, by the number of examples."""
        return float(t_quantile(confidence, np.array([self.examples - 1]))[0])


def fit_with_covariates(rows: MatchRows, names: Sequence[str], penalty: float = 0.0) -> CovariateFit:
    """The strengths and coefficients that maximise the likelihood.

    Args:
        rows: with covariates: of each match, how much more `a` has than `b`. Position is a covariate that is 1 where
            `a` is first and −1 where it is second.
        names: of the covariates.
        penalty: λ: the fit maximises the log-likelihood minus λ/2 · Σ of the squares of the strengths, and of the
            coefficients times the root mean square of their covariates.

    Raises:
        SpecError: There is not one name for each covariate.

    Example:
        >>> longer = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
        >>> rows = MatchRows.read([0] * 6, [1] * 6, [1, 0, 1, 1, 0, 0], cluster=range(6), covariates=longer)
        >>> fit = fit_with_covariates(rows, ["length"])
        >>> fit.coefficient.round(4).tolist()  # log 2: the longer one wins two of three
        [0.6931]
    """
    if rows.covariates.shape[1] != len(names):
        raise SpecError(f"matches: {rows.covariates.shape[1]} covariates need as many names, not {len(names)}")
    counts = count_matches(rows)
    rated = counts.played if penalty > 0 else largest_component(counts, connect(counts))
    some = rows.select(rated[rows.a] & rated[rows.b])
    scale = np.sqrt(np.mean(np.square(some.covariates), axis=0)) if len(some) else np.zeros(len(names))
    reasons = _reasons(some, scale, names)
    used = np.array([reason is None for reason in reasons], np.bool_)
    design = _Design(some, rated, some.covariates[:, used] / scale[used], penalty)
    at, converged = _maximise(design)
    covariance, examples = _covariance(design, at)
    if not converged:
        reasons = [each or _SEPARATED for each in reasons]
    n, width = rows.systems, rows.systems + len(names)
    unit, places = np.full(width, np.nan), np.append(np.ones(n, np.bool_), used)
    if converged:
        unit[places] = np.append(np.where(rated, 1.0, np.nan), 1 / scale[used])
    full, square = np.zeros(width), np.zeros((width, width))
    full[places], square[np.ix_(places, places)] = at, covariance
    full, square = full * unit, square * unit[:, None] * unit
    variance = np.diagonal(square)
    errors = np.sqrt(variance)
    of_differences = np.sqrt(np.maximum(variance[:n, None] + variance[:n] - 2 * square[:n, :n], 0.0))
    uncertainty = errors[:n], errors[n:], of_differences, examples, converged
    return CovariateFit(full[:n], rated & converged, full[n:], tuple(reasons), *uncertainty)


_SEPARATED: Final = "wins follow from the systems and covariates without exception, so there is no finite estimate"


def relative_differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How much more `a` has of something counted, from −1 to 1: (a − b) / (a + b), and 0 where neither has any.

    Example:
        >>> relative_differences(np.array([300, 0]), np.array([100, 0])).tolist()
        [0.5, 0.0]
    """
    total = np.asarray(a + b, np.float64)
    return np.asarray((a - b) / np.where(total > 0, total, 1.0))


_INDEPENDENT: Final = 1e-9
"""The share of a covariate's variance that must not be explained by the systems and the covariates before it."""


def _reasons(rows: MatchRows, scale: np.ndarray, names: Sequence[str]) -> list[str | None]:
    """Why each covariate has no coefficient: it never differs, or follows from the systems and earlier covariates."""
    reasons: list[str | None] = [None] * len(names)
    used: list[int] = []
    for place, name in enumerate(names):
        if not scale[place] > 0:
            reasons[place] = f"{name} is equal on both sides of every match"
            continue
        some = [*used, place]
        hessian = _hessian(rows, rows.covariates[:, some] / scale[some], rows.weight)
        last = hessian[:-1, -1]
        explained = last @ np.linalg.pinv(hessian[:-1, :-1], rcond=1e-12, hermitian=True) @ last
        if 1 - explained / hessian[-1, -1] > _INDEPENDENT:
            used.append(place)
        else:
            others = "".join(f", {names[each]}" for each in used)
            reasons[place] = f"{name} follows from which systems play{others}, so its effect cannot be separated"
    return reasons


class _Design(NamedTuple):
    """The regression.

    Attributes:
        rows: the matches between systems that are rated.
        rated: which systems these are.
        columns: the covariates that are used, each divided by its root mean square.
        penalty: λ.
    """

    rows: MatchRows
    rated: np.ndarray
    columns: np.ndarray
    penalty: float


def _maximise(design: _Design) -> tuple[np.ndarray, bool]:
    """Strengths and scaled coefficients, by Newton's method with halved steps, and whether it converged."""
    rows, penalty = design.rows, design.penalty
    at = np.zeros(rows.systems + design.columns.shape[1])
    base, step, best = at, np.zeros_like(at), -np.inf
    for _ in range(_STEPS):
        x = _log_odds(design, at)
        value = float(rows.weight @ (rows.outcome * x - np.logaddexp(0.0, x))) - penalty / 2 * float(at @ at)
        if not value >= best - 1e-13 * abs(value):
            step = step / 2
        else:
            base, best, p = at, value, logistic(x)
            slope = rows.weight * (rows.outcome - p)
            by_system = np.bincount(rows.a, slope, rows.systems) - np.bincount(rows.b, slope, rows.systems)
            gradient = np.concatenate([by_system, slope @ design.columns]) - penalty * at
            hessian = _regular(design, _hessian(rows, design.columns, rows.weight * p * (1 - p)))
            step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        at = base + step
        if np.abs(step).max(initial=0.0) <= _PRECISION:
            return at, _is_finite(design, at)
    return at, False


_STEPS: Final = 200
_PRECISION: Final = 1e-9
_LEAST: Final = 1e-9


def _is_finite(design: _Design, at: np.ndarray) -> bool:
    """Whether the maximum is at a finite place, and not so far away that the likelihood has become flat.

    Towards infinity, the information in some direction vanishes, compared with that of equal chances.
    """
    if design.penalty:
        return True
    rows, p = design.rows, logistic(_log_odds(design, at))
    weights = rows.weight * (p * (1 - p)), rows.weight * 0.25
    here, equal = (_regular(design, _hessian(rows, design.columns, weight)) for weight in weights)
    unit = np.linalg.inv(np.linalg.cholesky(equal))
    return bool(np.linalg.eigvalsh(unit @ here @ unit.T).min(initial=1.0) > _LEAST)


def _covariance(design: _Design, at: np.ndarray) -> tuple[np.ndarray, int]:
    """The robust covariance of the parameters, and the number of examples."""
    rows, p = design.rows, logistic(_log_odds(design, at))
    keys, place = np.unique(rows.cluster, return_inverse=True)
    slope, n = rows.weight * (rows.outcome - p), len(keys)
    meat = np.zeros((len(at), len(at)))
    for scores in sum_scores(rows, slope, slope[:, None] * design.columns, Units(place, n)):
        meat += scores.T @ scores
    hessian = _regular(design, _hessian(rows, design.columns, rows.weight * p * (1 - p)))
    bread = np.linalg.pinv(hessian, hermitian=True)
    return bread @ meat @ bread * (n / (n - 1) if n > 1 else np.nan), n


def _log_odds(design: _Design, at: np.ndarray) -> np.ndarray:
    return np.asarray(at[design.rows.a] - at[design.rows.b] + design.columns @ at[design.rows.systems :])


def _hessian(rows: MatchRows, columns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The weighted squares of the differences of systems and covariates."""
    n, more = rows.systems, columns.shape[1]
    found = np.zeros((n + more, n + more))
    between = np.bincount(rows.a * n + rows.b, weight, n * n).reshape(n, n)
    between = between + between.T
    found[:n, :n] = np.diag(between.sum(axis=-1)) - between
    weighted = columns * weight[:, None]
    for column in range(more):
        each = weighted[:, column]
        found[:n, n + column] = found[n + column, :n] = np.bincount(rows.a, each, n) - np.bincount(rows.b, each, n)
    found[n:, n:] = columns.T @ weighted
    return found


def _regular(design: _Design, hessian: np.ndarray) -> np.ndarray:
    """With the penalty, or with the mean of the strengths held, and 1 for systems that are not rated."""
    n = design.rows.systems
    found = hessian + design.penalty * np.eye(len(hessian))
    left_out = np.flatnonzero(~design.rated)
    found[left_out, left_out] = 1.0
    if not design.penalty:
        rated = design.rated / max(np.sqrt(design.rated.sum()), 1.0)
        found[:n, :n] += hessian[:n, :n].max(initial=1.0) * np.outer(rated, rated)
    return found
