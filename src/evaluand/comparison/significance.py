"""Tests of whether two systems differ on the same rows, p values adjusted for many tests, and letters for rankings."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from evaluand.metrics.stats.intervals import binomial_tail, normal_tail, random_bits

EXACT_CLUSTERS: Final = 16
DRAWN_CLUSTERS: Final = 20_000
DRAWS: Final = 10_000
LARGEST_SHARE: Final = 0.01
_AT_ONCE: Final = 1 << 22
_ROUNDING: Final = 1e-12
_TILTED_BITS: Final = 1 << 20
_TINY_P: Final = 1e-9
_FEWEST_HITS: Final = 20
_LARGEST_TILT: Final = 2.0**40


class TestResult(NamedTuple):
    """The two-sided p value of an exchange of both systems.

    Attributes:
        p: the probability of outcomes that are at least as extreme as the observed one.
        method: how it was computed.
        mid_p: the same with half of the probability of equally extreme ones.
        name: of the test.
    """

    p: float
    method: str
    mid_p: float
    name: str = "sign flip"


def mcnemar(won: int, lost: int) -> float:
    """The exact two-sided p value of McNemar's test: under the null, a row that differs goes either way like a coin.

    Source: Q. McNemar, "Note on the sampling error of the difference between correlated proportions or percentages"
    (Psychometrika 12, 1947), with the binomial distribution in place of the chi-squared.

    Example:
        >>> mcnemar(8, 1), mcnemar(0, 0)
        (0.0390625, 1.0)
    """
    return min(2 * binomial_tail(min(won, lost), won + lost), 1.0)


def mid_mcnemar(won: int, lost: int) -> TestResult:
    """McNemar's test with the mid-p value, which errs about as often as its level says, and not clearly less often.

    Source: M. Fagerland, S. Lydersen & P. Laake, "The McNemar test for binary matched-pairs data: mid-p and asymptotic
    are better than exact conditional" (BMC Medical Research Methodology 13, 2013).

    Example:
        >>> mid_mcnemar(8, 1).mid_p, mid_mcnemar(0, 0).mid_p
        (0.021484375, 1.0)
    """
    fewer, n = min(won, lost), won + lost
    mid_p = min(binomial_tail(fewer, n) + binomial_tail(fewer - 1, n), 1.0)
    return TestResult(mcnemar(won, lost), "exact", mid_p, "McNemar")


def sign_flip(sums: np.ndarray, drawn_up_to: int = DRAWN_CLUSTERS) -> TestResult:
    """The two-sided p value of the paired permutation test: the answers of both systems are exchanged at random.

    An exchange flips the sign of a difference. All patterns of signs are enumerated where they are few or can be
    counted; else 10,000 patterns of the ordered sizes are drawn, a pure function of their number, and if none of them
    is as extreme, patterns near the observed one (`drawn_p`); so the order of clusters does not matter. With more than
    20,000 clusters, none of which has more than a hundredth of the sum of squares, the sum is taken as normal: the
    first term that this omits from the Edgeworth series changes a p value of 0.05 by less than a hundredth of itself.
    Source: E. J. G. Pitman, "Significance tests which may be applied to samples from any populations" (Supplement to
    the Journal of the Royal Statistical Society 4, 1937); the drawn p value counts the observed pattern among the
    drawn (B. Phipson & G. K. Smyth, Statistical Applications in Genetics and Molecular Biology 9, 2010).

    Args:
        sums: the summed difference of each cluster; all rows of a cluster flip together.
        drawn_up_to: the largest number of clusters for which patterns are drawn; a smaller one is faster, less exact.

    Example:
        >>> sign_flip(np.array([1.0, 2.0, 3.0]))
        TestResult(p=0.25, method='exact', mid_p=0.125, name='sign flip')
    """
    sums = sums[sums != 0]
    if len(sums) == 0:
        return TestResult(1.0, "exact", 1.0)
    if np.ptp(np.abs(sums)) <= _ROUNDING * np.abs(sums).max():
        return mid_mcnemar(int((sums > 0).sum()), int((sums < 0).sum()))._replace(name="sign flip")
    # differences by rounding alone count as equal
    observed, rounding = abs(float(sums.sum())), _ROUNDING * float(np.abs(sums).sum())
    if len(sums) <= EXACT_CLUSTERS:
        patterns = np.arange(1 << len(sums))[:, None] >> np.arange(len(sums)) & 1
        sizes = np.abs((1 - 2 * patterns) @ sums)
        p, beyond = (float(np.mean(sizes >= least)) for least in (observed - rounding, observed + rounding))
        return TestResult(p, "exact", (p + beyond) / 2)
    scaled = sums / np.abs(sums).max()
    square = float(scaled @ scaled)
    if len(sums) > drawn_up_to and square * LARGEST_SHARE >= 1:
        p = 2 * normal_tail(abs(float(scaled.sum())) / math.sqrt(square))
        return TestResult(p, "normal", p)
    ordered = np.sort(np.abs(sums))
    drawn = np.abs(draw_sums(ordered))
    found = drawn_p(int((drawn >= observed - rounding).sum()), ordered, observed - rounding)
    beyond = float((drawn > observed + rounding).sum()) / (DRAWS + 1)
    return found._replace(mid_p=(found.p + beyond) / 2) if beyond else found


def drawn_p(extreme: int, sums: np.ndarray, observed: float) -> TestResult:
    """The p value of drawn patterns of signs; if no drawn one is as extreme as the observed one, that of tilted draws.

    So p values may be far below 1 / 10,001, and clear differences remain significant among very many.

    Args:
        extreme: how many drawn patterns are at least as extreme as the observed one.
        sums: the summed difference of each cluster.
        observed: the absolute value of their sum.
    """
    p = (extreme + 1) / (DRAWS + 1)
    drawn = TestResult(p, f"{DRAWS:,} draws", p)
    if extreme or observed <= 0:
        return drawn
    p = _tilted_p(sums, observed)
    return min(drawn, TestResult(p, "tilted draws", p))


def _tilted_p(sums: np.ndarray, observed: float) -> float:
    """An upper limit of a small two-sided p value of all patterns of signs, by importance sampling.

    Signs are drawn independently, each with so high a chance of being positive that the mean sum is the observed one;
    about half of the patterns are then as extreme, and each counts by its chance among equal patterns. The limit is the
    estimate and three standard errors. It is never above Chernoff's bound, which serves alone where it is tiny.
    Source: D. Siegmund, "Importance sampling in the Monte Carlo study of sequential tests" (Annals of Statistics 4,
    1976); H. Chernoff, "A measure of asymptotic efficiency for tests of a hypothesis based on the sum of observations"
    (Annals of Mathematical Statistics 23, 1952).
    """
    largest = float(np.abs(sums).max())
    sizes, excess = np.abs(sums) / largest, float(np.abs(sums).sum() - observed) / largest
    tilt = _solve_tilt(sizes, excess / 2)
    base = float(np.log1p(np.exp(-2 * tilt * sizes)).sum()) - len(sizes) * math.log(2)
    bound = 2 * math.exp(min(base + tilt * excess, 0.0))
    if bound < _TINY_P:
        return bound
    draws = min(max(_TILTED_BITS // len(sizes), 250), 2000)
    negative = np.concatenate(list(_draw_negative(sizes, tilt, draws)))
    chance = np.where(negative <= excess / 2, np.exp(np.minimum(base + 2 * tilt * negative, 0.0)), 0.0)
    if np.count_nonzero(chance) < _FEWEST_HITS:
        return bound
    return min(bound, 2 * float(chance.mean() + 3 * chance.std(ddof=1) / math.sqrt(draws)))


def _solve_tilt(sizes: np.ndarray, negative: float) -> float:
    """The tilt for which the mean sum of negative sizes is the one asked for."""
    low, high = 0.0, 1.0
    while high < _LARGEST_TILT and _mean_negative(sizes, high) > negative:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_negative(sizes, middle) > negative else (low, middle)
    return high


def _mean_negative(sizes: np.ndarray, tilt: float) -> float:
    return float((sizes / (1 + np.exp(np.minimum(2 * tilt * sizes, 700.0)))).sum())


def _draw_negative(sizes: np.ndarray, tilt: float, draws: int) -> Iterator[np.ndarray]:
    """The sums of negative sizes of tilted patterns, some at a time."""
    n, chance = len(sizes), 1 / (1 + np.exp(np.minimum(2 * tilt * sizes, 700.0)))
    step = max(1, _AT_ONCE // n)
    for first in range(0, draws, step):
        last = min(first + step, draws)
        bits = random_bits(np.arange(first * n, last * n, dtype=np.uint64), 1) >> np.uint64(11)
        yield (bits.reshape(-1, n) < chance * 2.0**53).astype(np.float64) @ sizes


def draw_sums(sums: np.ndarray) -> np.ndarray:
    """The sum under each of the drawn patterns of signs; of a matrix, draws × columns.

    The difference of two columns under a pattern is the difference of their sums, so that one product serves all pairs.
    """
    words = -(-len(sums) // 64)
    parts = []
    for first in range(0, DRAWS, step := max(1, _AT_ONCE // (64 * words))):
        many = min(step, DRAWS - first)
        bits = random_bits(np.arange(first * words, (first + many) * words, dtype=np.uint64), 0).astype("<u8")
        flips = np.unpackbits(bits.reshape(many, words).view(np.uint8), axis=1, count=len(sums))
        parts.append(sums.sum(axis=0) - 2 * (flips.astype(np.float64) @ sums))
    return np.concatenate(parts)


def holm(p: np.ndarray) -> np.ndarray:
    """p values adjusted for the family-wise error rate; NaN stays NaN and does not count as a test.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure" (Scandinavian Journal of Statistics 6,
    1979).

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    known, order, ordered = _sort_known(p)
    n = len(ordered)
    adjusted = np.maximum.accumulate(ordered * np.arange(n, 0, -1))
    return _restore_order(p, known, order, adjusted)


def shaffer(p: np.ndarray, group: Sequence[int], systems: Mapping[int, int]) -> np.ndarray:
    """p values adjusted for the family-wise error rate, for all pairs of several systems: never above those of Holm.

    If one pair of systems differs, some other pair does too, so that fewer hypotheses can be true than remain. Each
    step counts how many equalities may hold at most: systems fall into sets of equals, and pairs within sets are equal.
    Source: J. P. Shaffer, "Modified sequentially rejective multiple test procedures" (Journal of the American
    Statistical Association 81, 1986), where the count depends on the number rejected; here by group.

    Args:
        p: of the tests; NaN stays NaN and does not count as one.
        group: of each test: the comparison of the same systems, by one measure, on the same rows.
        systems: of each group, how many systems are compared in all pairs; groups that are not in it count every test.

    Example:
        >>> shaffer(np.array([0.01, 0.04, 0.03]), [0, 0, 0], {0: 3}).tolist()
        [0.03, 0.04, 0.03]
    """
    known, order, ordered = _sort_known(p)
    groups = [group[test] for test in known[order].tolist()]
    left = {each: groups.count(each) for each in set(groups)}
    rejected = dict.fromkeys(left, 0)
    possible = {each: _possible_equalities(systems[each]) for each in left if each in systems}
    true = dict(left)  # by group: how many tests may be of true hypotheses
    steps = []
    for each in groups:
        steps.append(sum(true.values()))
        left[each] -= 1
        rejected[each] += 1
        true[each] = left[each]
        if each in possible:
            most = math.comb(systems[each], 2) - rejected[each]
            true[each] = min(left[each], (possible[each] & (1 << most + 1) - 1).bit_length() - 1)
    return _restore_order(p, known, order, np.maximum.accumulate(ordered * np.array(steps)))


def _possible_equalities(systems: int) -> int:
    """The numbers of pairs within sets into which systems can fall, as bits."""
    possible = [1]
    for n in range(1, systems + 1):
        bits = 0
        for size in range(1, n + 1):
            bits |= possible[n - size] << math.comb(size, 2)
        possible.append(bits)
    return possible[systems]


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """p values adjusted for the false discovery rate; NaN stays NaN and does not count as a test.

    Source: Y. Benjamini & Y. Hochberg, "Controlling the false discovery rate" (Journal of the Royal Statistical
    Society B 57, 1995).

    Example:
        >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.04, 0.04]
    """
    known, order, ordered = _sort_known(p)
    n = len(ordered)
    adjusted = np.minimum.accumulate((ordered * n / np.arange(1, n + 1))[::-1])[::-1]
    return _restore_order(p, known, order, adjusted)


def _sort_known(p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    known = np.flatnonzero(~np.isnan(p))
    order = np.argsort(p[known], kind="stable")
    return known, order, p[known][order]


def _restore_order(p: np.ndarray, known: np.ndarray, order: np.ndarray, adjusted: np.ndarray) -> np.ndarray:
    result = np.full(len(p), np.nan)
    result[known[order]] = np.minimum(adjusted, 1.0)
    return result


def assign_letters(ranked: Sequence[int], differing: Collection[frozenset[int]]) -> dict[int, str]:
    """A compact letter display: two systems share a letter if and only if they cannot be distinguished.

    Each letter denotes a largest set of systems of which no two differ; letters follow the order of the ranking.
    Source: H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons" (Journal of
    Computational and Graphical Statistics 13, 2004).

    Args:
        ranked: the systems, best first.
        differing: the pairs that differ.

    Example:
        >>> assign_letters([0, 1, 2], [frozenset({0, 2})])
        {0: 'a', 1: 'ab', 2: 'b'}
    """
    place = {system: i for i, system in enumerate(ranked)}
    alike = [(1 << len(ranked)) - 1 ^ 1 << i for i in range(len(ranked))]  # of each system, as bits
    for pair in differing:
        one, other = (place[system] for system in pair)
        alike[one] &= ~(1 << other)
        alike[other] &= ~(1 << one)
    letters: list[list[str]] = [[] for _ in ranked]
    for number, members in enumerate(sorted(_members(bits) for bits in _largest_sets(alike))):
        for member in members:
            letters[member].append(_letter(number))
    return {system: "".join(each) for system, each in zip(ranked, letters, strict=True)}


def _largest_sets(alike: Sequence[int]) -> Iterator[int]:
    """The largest sets of systems that are all alike, as bits: the maximal cliques of a graph.

    Source: C. Bron & J. Kerbosch, "Algorithm 457: finding all cliques of an undirected graph" (Communications of the
    ACM 16, 1973), with the pivot of E. Tomita, A. Tanaka & H. Takahashi (Theoretical Computer Science 363, 2006).
    """
    waiting = [(0, (1 << len(alike)) - 1, 0)]
    while waiting:
        found, candidates, done = waiting.pop()
        if not candidates and not done:
            yield found
        if not candidates:
            continue
        pivot = max(_members(candidates | done), key=lambda i: (candidates & alike[i]).bit_count())
        for i in _members(candidates & ~alike[pivot]):
            waiting.append((found | 1 << i, candidates & alike[i], done & alike[i]))
            candidates &= ~(1 << i)
            done |= 1 << i


def _members(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _letter(number: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[number] if number < 26 else f"({number + 1})"
