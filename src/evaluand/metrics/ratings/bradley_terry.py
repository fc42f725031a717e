"""Strengths of systems from matches, by the model of Bradley and Terry and its extensions to ties.

A strength is a log-odds: a system beats one whose strength is lower by d with the odds exp(d). Strengths have the
mean 0, because only their differences mean something. Of two systems that differ by d, the probabilities are

    half         win : loss = exp(d) : 1, and a tie is half a win and half a loss
    davidson     win : tie : loss = exp(d/2) : ν : exp(−d/2), with ν ≥ 0 common to all pairs
    rao_kupper   win = 1 / (1 + θ exp(−d)), loss = 1 / (1 + θ exp(d)), with θ ≥ 1 common to all pairs

`half` takes probabilities as outcomes; the other two count the side that an outcome above ½ favours as the winner.
Fits are the maximum of the likelihood, by Newton's method, for all replicates of a bootstrap at once.
Source: R. A. Bradley & M. E. Terry, "Rank analysis of incomplete block designs" (Biometrika 39, 1952); R. R. Davidson,
"On extending the Bradley-Terry model to accommodate ties" (JASA 65, 1970); P. V. Rao & L. L. Kupper, "Ties in
paired-comparison experiments" (JASA 62, 1967).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.counts import Connections, MatchCounts, Ties, connect, largest_component


class BradleyTerryFit(NamedTuple):
    """Strengths with the leading axes of their counts.

    Attributes:
        strength: … × systems, in log-odds, with mean 0. NaN for systems that are not `rated`.
        rated: … × systems: the systems with a finite estimate, which are those of the largest component; with a
            penalty, all that have matches. `explain_unrated` says why the others are not.
        tie: Davidson's ν or Rao and Kupper's θ; NaN if ties are half wins.
        converged: false where the fit has failed, or ties have no finite parameter; then no system is rated.
        connections: the chains of wins and ties.
        ties: the model of ties.
        penalty: λ, see `fit_bradley_terry`.
        inner: … × systems: the strengths in each component, with mean 0 there. 0 for a component of one system.
    """

    strength: np.ndarray
    rated: np.ndarray
    tie: np.ndarray
    converged: np.ndarray
    connections: Connections
    ties: Ties
    penalty: float
    inner: np.ndarray

    def probability(self) -> np.ndarray:
        """… × systems × systems: the expected share of the win that the first gets from the second, ties as ½."""
        d = self.strength[..., :, None] - self.strength[..., None, :]
        win, lost = _probabilities(d, self.tie[..., None, None], self.ties)
        return np.asarray((1 + win - lost) / 2)


def fit_bradley_terry(
    counts: MatchCounts, ties: Ties = "half", penalty: float = 0.0, start: np.ndarray | None = None
) -> BradleyTerryFit:
    """The strengths that maximise the likelihood.

    Args:
        counts: with any leading axes.
        ties: the model of ties.
        penalty: λ: the fit maximises the log-likelihood minus λ/2 · Σ strength², the posterior mode with independent
            normal priors of variance 1/λ. All systems with matches then have a strength.
        start: strengths to start from, such as those of all examples for replicates; they do not change the result.

    Raises:
        SpecError: An option is invalid.

    Example:
        >>> from evaluand.metrics.ratings.counts import MatchRows, count_matches
        >>> rows = MatchRows.read(a=[0, 0, 0, 0], b=[1, 1, 1, 1], outcome=[1.0, 1.0, 1.0, 0.0], cluster=[0, 1, 2, 3])
        >>> fit_bradley_terry(count_matches(rows)).strength.round(4).tolist()  # a difference of log 3
        [0.5493, -0.5493]
    """
    if ties not in get_args(Ties):
        raise SpecError(f"ties={ties!r} must be one of {', '.join(get_args(Ties))}")
    if not (math.isfinite(penalty) and penalty >= 0):
        raise SpecError(f"penalty={penalty!r} must be a finite number of at least 0")
    shape, systems = counts.wins.shape[:-1], counts.systems
    many = math.prod(shape)
    flat, step = counts.reshape(many), max(1, _AT_ONCE // max(systems * systems, 1))
    parts = [_fit(flat.select(slice(i, i + step)), ties, penalty, start) for i in range(0, many, step)]
    joined = [np.concatenate(each) for each in zip(*parts, strict=True)]
    inner, rated, tie, converged, above, component = (each.reshape(shape + each.shape[1:]) for each in joined)
    strength = np.where(rated, inner, np.nan)
    return BradleyTerryFit(strength, rated, tie, converged, Connections(above, component), ties, float(penalty), inner)


def explain_unrated(counts: MatchCounts, fit: BradleyTerryFit, labels: Sequence[str] | None = None) -> list[str | None]:
    """Why each system of a fit without leading axes has no strength; None for those that are rated.

    Args:
        labels: the names of the systems; their numbers by default.

    Example:
        >>> from evaluand.metrics.ratings.counts import MatchRows, count_matches
        >>> rows = MatchRows.read(a=[0, 1, 2], b=[1, 2, 1], outcome=[1.0, 1.0, 1.0], cluster=[0, 1, 2])
        >>> counts = count_matches(rows)
        >>> explain_unrated(counts, fit_bradley_terry(counts), ["A", "B", "C"])
        ['"A" won its only match, so its strength has no finite estimate', None, None]
    """
    names = [f"system {number}" for number in range(counts.systems)] if labels is None else [f'"{x}"' for x in labels]
    each = zip(names, counts.square("n").sum(axis=-1), counts.square("score").sum(axis=-1), strict=True)
    return [
        None if fit.rated[system] else _reason(name, system, float(played), float(score), fit)
        for system, (name, played, score) in enumerate(each)
    ]


def _reason(name: str, system: int, played: float, score: float, fit: BradleyTerryFit) -> str:
    if played == 0:
        return f"no match of {name} has an outcome"
    if min(score, played - score) <= _ROUNDING * played:
        verb = "won" if score > played / 2 else "lost"
        matches = "its only match" if played == 1 else f"all of its {played:,g} matches"
        return f"{name} {verb} {matches}, so its strength has no finite estimate"
    if np.isinf(fit.tie):
        return (
            f"{name} has no finite strength: wins and ties contradict nothing, so the parameter of ties grows without "
            "limit; count ties as half wins or set a penalty"
        )
    if not fit.converged:
        return f"{name} has no strength: the fit did not converge in {_STEPS} steps; set a penalty"
    if not fit.rated.any():
        return f"{name} cannot be rated: the matches link the systems in groups, of which none is the largest"
    above, one = fit.connections.above, int(np.argmax(fit.rated))
    if above[system, one] or above[one, system]:
        chain = f"from the rated systems to {name}" if above[system, one] else f"from {name} to the rated systems"
        return f"no chain of wins or ties leads {chain}, so its strength has no finite estimate"
    return f"no chain of wins or ties links {name} with the rated systems, so it cannot be compared with them"


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(−x)), without overflow."""
    far = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, far) / (1 + far))


def pair_slopes(counts: MatchCounts, fit: BradleyTerryFit) -> tuple[np.ndarray, np.ndarray]:
    """What each pair adds to the slope of the log-likelihood at a fit: by its difference, and by the tie parameter.

    Pairs of different components add nothing. The tie parameter is taken as its logarithm.
    """
    counts = counts.scale(_inside(counts, fit))
    each = _PAIRS[fit.ties](counts, fit.inner[counts.a] - fit.inner[counts.b], _fitted_tie(fit))
    return each.slope, each.tie_slope


def inverse_hessian(counts: MatchCounts, fit: BradleyTerryFit) -> np.ndarray:
    """The inverse of the negative second derivatives at a fit without leading axes, with mean 0 in each component.

    Parameters are the strengths, then the logarithm of the tie parameter; rows of a parameter that is fixed are 0.
    """
    counts = counts.scale(_inside(counts, fit)).reshape(1)
    together = None if fit.penalty else fit.connections.together[None]
    slopes = _slopes(counts, np.append(fit.inner, _fitted_tie(fit))[None], fit.ties, fit.penalty)
    free = np.array([bool(np.isfinite(fit.tie) and counts.ties.any() and fit.ties != "half")])
    hessian, projection = _regular_hessian(slopes.hessian, free, together)
    found = np.linalg.inv(hessian[0])
    found[:-1, :-1] -= projection[0]
    if not free[0]:
        found[-1] = found[:, -1] = 0.0
    return np.asarray(found)


def _inside(counts: MatchCounts, fit: BradleyTerryFit) -> np.ndarray:
    return np.asarray(fit.connections.together[counts.a, counts.b] | (fit.penalty > 0))


def _fitted_tie(fit: BradleyTerryFit) -> np.ndarray:
    """The tie parameter in the scale of the fit; a large number for an infinite one."""
    with np.errstate(divide="ignore"):
        return np.zeros(1) if fit.ties == "half" else np.minimum(np.log(np.atleast_1d(fit.tie)), _ALL_TIES)


_ALL_TIES: Final = 100.0
_AT_ONCE: Final = 1 << 22  # cells of the Hessians in memory


def _fit(counts: MatchCounts, ties: Ties, penalty: float, start: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """The arrays of a fit, for counts with one leading axis."""
    connections = connect(counts, ties)
    if penalty > 0:
        rated, together = counts.played, None
    else:
        rated, together = largest_component(counts, connections), connections.together
        counts = counts.scale(together[:, counts.a, counts.b])
    theta, tie, converged = _maximise(counts, ties, penalty, together, start)
    return theta, rated & converged[:, None], tie, converged, connections.above, connections.component


def _ties_are_bounded(counts: MatchCounts, ties: Ties, penalty: float) -> np.ndarray:
    """Whether the parameter of ties has a finite estimate.

    It has none where strengths exist that would explain all matches at once when multiplied without limit together with
    the logarithm of the parameter: differences of at least 2 for wins and of at most 2 for ties. They exist unless a
    cycle of these inequalities has a sum below 0, which the shortest paths (Floyd and Warshall) show.
    """
    bounded = np.ones(len(counts.wins), np.bool_)
    if ties == "half":
        return bounded
    tied, won, lost = counts.ties > 0, counts.wins > 0, counts.losses > 0
    if penalty > 0:
        return np.asarray(~tied.any(axis=-1) | won.any(axis=-1) | lost.any(axis=-1))
    doubtful = np.flatnonzero(tied.any(axis=-1) & ~(won & lost).any(axis=-1))
    if not len(doubtful):
        return bounded
    tied, won, lost = tied[doubtful], won[doubtful], lost[doubtful]
    forth, back = (np.where(ahead, -2.0, np.where(tied, 2.0, np.inf)) for ahead in (won, lost))
    length = counts.fill(forth, back, np.inf)
    for pivot in range(counts.systems):
        np.minimum(length, length[:, :, pivot, None] + length[:, None, pivot, :], out=length)
        np.maximum(length, -4.0 * counts.systems, out=length)  # cycles below 0 would grow exponentially
    bounded[doubtful] = np.einsum("rii->ri", length).min(axis=-1) < 0
    return bounded


def _maximise(
    counts: MatchCounts, ties: Ties, penalty: float, together: np.ndarray | None, start: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strengths, parameters of ties, and whether the maximum was reached, by Newton's method with halved steps.

    A step that lowers the likelihood is halved. The likelihood is concave, so the method cannot go astray.
    """
    many, systems = len(counts.wins), counts.systems
    at = np.zeros((many, systems + 1))
    if start is not None:
        at[:, :systems] = np.nan_to_num(start)
    at[:, systems], bounded = _starting_tie(counts, ties), _ties_are_bounded(counts, ties, penalty)
    free = (ties != "half") & (counts.ties.sum(axis=-1) > 0) & bounded
    base, step, best = at.copy(), np.zeros_like(at), np.full(many, -np.inf)
    converged = np.zeros(many, np.bool_)
    left = np.flatnonzero(bounded | (penalty > 0))
    for _ in range(_STEPS):
        if not len(left):
            break
        slopes = _slopes(counts.select(left), at[left], ties, penalty)
        worse = ~(slopes.value >= best[left] - _ROUNDING * np.abs(slopes.value))
        back, on = left[worse], left[~worse]
        step[back] /= 2
        base[on], best[on] = at[on], slopes.value[~worse]
        better = _Slopes(*(each[~worse] for each in slopes))
        step[on] = _newton_step(better, free[on], None if together is None else together[on])
        at[left] = base[left] + step[left]
        done = np.abs(step[left]).max(axis=-1) <= _PRECISION
        converged[left[done]] = True
        left = left[~done]
    theta, tie = at[:, :systems], at[:, systems]
    if together is not None:
        share = together / together.sum(axis=-1, keepdims=True)
        theta = theta - np.einsum("rij,rj->ri", share, theta)
    parameter = np.full(many, np.nan) if ties == "half" else np.where(bounded, np.exp(tie), np.inf)
    return theta, parameter, converged


_STEPS: Final = 200
_PRECISION: Final = 1e-9
_LONGEST: Final = 4.0
"""The longest step, in log-odds: far from the maximum the likelihood is so flat that a step could go anywhere."""

_ROUNDING: Final = 1e-13


class _Slopes(NamedTuple):
    """The log-likelihood and its derivatives, with replicates on the first axis.

    Attributes:
        value: the log-likelihood.
        gradient: replicates × parameters: the strengths, then that of ties.
        hessian: the negative matrix of second derivatives, replicates × parameters × parameters.
    """

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray


def _slopes(counts: MatchCounts, at: np.ndarray, ties: Ties, penalty: float) -> _Slopes:
    systems = counts.systems
    theta, tie = at[:, :systems], at[:, systems:]
    each = _PAIRS[ties](counts, theta[:, counts.a] - theta[:, counts.b], tie)
    gradient, hessian = np.zeros(at.shape), np.zeros((*at.shape, systems + 1))
    pulls, mixed = (counts.fill(pair, -pair) for pair in (each.slope, each.mixed))
    gradient[:, :systems] = pulls.sum(axis=-1) - penalty * theta
    gradient[:, systems] = each.tie_slope.sum(axis=-1)
    hessian[:, counts.a, counts.b] = hessian[:, counts.b, counts.a] = -each.curvature
    diagonal = np.arange(systems)
    hessian[:, diagonal, diagonal] = penalty - hessian[:, :systems, :systems].sum(axis=-1)
    hessian[:, :systems, systems] = hessian[:, systems, :systems] = mixed.sum(axis=-1)
    hessian[:, systems, systems] = each.tie_curvature.sum(axis=-1)
    value = each.value.sum(axis=-1) - penalty / 2 * np.square(theta).sum(axis=-1)
    return _Slopes(value, gradient, hessian)


def _newton_step(slopes: _Slopes, free: np.ndarray, together: np.ndarray | None) -> np.ndarray:
    """The step to the maximum of the parabola; 0 for parameters of ties that are not free."""
    hessian, _ = _regular_hessian(slopes.hessian, free, together)
    gradient = slopes.gradient.copy()
    gradient[~free, -1] = 0.0
    step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
    return np.asarray(step * (_LONGEST / np.maximum(np.abs(step).max(axis=-1, keepdims=True), _LONGEST)))


def _regular_hessian(
    hessian: np.ndarray, free: np.ndarray, together: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The Hessian in which fixed parameters of ties and the means of components are held, and what the latter add.

    The strengths of a component can all be shifted, which leaves the Hessian without an inverse; so a multiple of the
    projection on its means is added. What this adds to the inverse is returned.
    """
    found, systems = hessian.copy(), hessian.shape[-1] - 1
    found[~free, systems, :] = found[~free, :, systems] = 0.0
    found[~free, systems, systems] = 1.0
    if together is None:
        return found, np.zeros((len(hessian), 1, 1))
    diagonal = np.einsum("rii->ri", hessian[:, :systems, :systems])
    scale = np.maximum(diagonal.max(axis=-1, initial=0.0), np.finfo(float).tiny)[:, None, None]
    projection = together / together.sum(axis=-1, keepdims=True)
    found[:, :systems, :systems] += scale * projection
    return found, projection / scale


class _Pairs(NamedTuple):
    """The log-likelihood of each pair and its derivatives by the difference d and the parameter of ties.

    All are written without differences of large numbers, so that one loss in 10¹² matches still counts.

    Attributes:
        value: replicates × pairs, as all.
        slope: by d; `curvature`: the negative second derivative.
        mixed: the negative derivative by d and the parameter of ties.
        tie_slope: by the parameter of ties; `tie_curvature`: the negative second derivative.
    """

    value: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    mixed: np.ndarray
    tie_slope: np.ndarray
    tie_curvature: np.ndarray


def _half_pairs(counts: MatchCounts, d: np.ndarray, tie: np.ndarray) -> _Pairs:
    score, rest = counts.score, counts.n - counts.score
    win, lost, none = logistic(d), logistic(-d), np.zeros_like(d)
    value = -score * np.logaddexp(0.0, -d) - rest * np.logaddexp(0.0, d)
    return _Pairs(value, score * lost - rest * win, counts.n * win * lost, none, none, none)


def _davidson_pairs(counts: MatchCounts, d: np.ndarray, tie: np.ndarray) -> _Pairs:
    """With the parameter log ν, which is −∞ without ties."""
    n, far = counts.n, np.abs(d)
    win, lost = _probabilities(d, np.exp(tie), "davidson")
    log_sum = np.log1p(np.exp(-far) + np.exp(tie - far / 2))
    tied = np.exp(tie - far / 2 - log_sum)
    upset = np.where(d > 0, counts.losses, counts.wins)
    value = np.where(counts.ties > 0, counts.ties * np.where(np.isfinite(tie), tie - far / 2, 0.0), 0.0)
    return _Pairs(
        value - upset * far - n * log_sum,
        counts.wins * (tied / 2 + lost) - counts.losses * (tied / 2 + win) + counts.ties * (lost - win) / 2,
        n * (win * (tied + lost) + lost * (tied + win) + 2 * win * lost) / 4,
        -n * (win - lost) * tied / 2,
        counts.ties * (win + lost) - (counts.wins + counts.losses) * tied,
        n * tied * (win + lost),
    )


def _rao_kupper_pairs(counts: MatchCounts, d: np.ndarray, tie: np.ndarray) -> _Pairs:
    """With the parameter τ = log θ, which is 0 without ties: a tie is neither the win of one nor that of the other."""
    ties, known = counts.ties, counts.ties > 0
    win, other, loss, rest = logistic(d - tie), logistic(tie - d), logistic(-d - tie), logistic(d + tie)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = -counts.wins * np.logaddexp(0.0, tie - d) - ties * np.logaddexp(0.0, d - tie)
        value -= counts.losses * np.logaddexp(0.0, d + tie) + ties * np.logaddexp(0.0, -d - tie)
        value += np.where(known, ties * np.log(-np.expm1(-2 * tie)), 0.0)
        separation = np.where(known, ties * 2 / np.expm1(2 * tie), 0.0)
        bend = np.where(known, ties / np.square(np.sinh(tie)), 0.0)
    up, down = counts.wins * other - ties * win, counts.losses * rest - ties * loss
    bend_up, bend_down = (counts.wins + ties) * win * other, (counts.losses + ties) * loss * rest
    both = bend_up + bend_down
    return _Pairs(value, up - down, both, bend_down - bend_up, separation - up - down, both + bend)


_PAIRS = {"half": _half_pairs, "davidson": _davidson_pairs, "rao_kupper": _rao_kupper_pairs}


def _probabilities(d: np.ndarray, tie: np.ndarray, ties: Ties) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of a win and of a loss for the difference d; those of `half` add up to 1."""
    if ties == "half":
        return logistic(d), logistic(-d)
    if ties == "rao_kupper":
        return logistic(d - np.log(tie)), logistic(-d - np.log(tie))
    far = np.exp(-np.abs(d))
    total = 1 + far + tie * np.sqrt(far)
    first, second = 1 / total, far / total
    return np.where(d > 0, first, second), np.where(d > 0, second, first)


def _starting_tie(counts: MatchCounts, ties: Ties) -> np.ndarray:
    """The parameter of ties in the scale of the fit if all systems were equal."""
    n, tied = counts.n.sum(axis=-1), counts.ties.sum(axis=-1)
    share = np.minimum(tied / np.maximum(n, np.finfo(float).tiny), 1 - 1e-6)
    with np.errstate(divide="ignore"):
        if ties == "davidson":
            return np.asarray(np.log(2 * share / (1 - share)))
        return np.asarray(2 * np.arctanh(share)) if ties == "rao_kupper" else np.zeros(len(n))
