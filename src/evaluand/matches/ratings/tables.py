"""The rows of the tables of ratings, from several sets of matches as one table of arrays.

Systems with the same label are one system. Sets extend each other: what the same judge says about the same pair, on the
same example and in the same order, counts once, and the last set that has an outcome decides. How examples and judges
are identified: `matches.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.score_shards import cluster_keys
from evaluand.comparison.significance import assign_letters, holm, shaffer
from evaluand.core.errors import DataError, SpecError, plural, warn
from evaluand.core.key_columns import INDEX
from evaluand.core.row_numbers import count_earlier, number_rows
from evaluand.data.dataset import Dataset
from evaluand.matches.kind import judge_name
from evaluand.matches.matches import (
    ExampleKeys,
    JudgeKeys,
    Matches,
    file_origin,
    number_of,
    read_example_keys,
    read_judge_keys,
)
from evaluand.matches.ratings.estimates import (
    NO_SPREAD,
    Estimates,
    estimate_equal_length,
    estimate_strengths,
    estimate_win_rates,
)
from evaluand.matches.ratings.method import COVARIATES, LENGTH, POSITION, RatingMethod
from evaluand.matches.schedule import find_system
from evaluand.metrics.ratings.counts import MatchRows, Side, count_matches
from evaluand.metrics.ratings.covariates import relative_differences
from evaluand.metrics.ratings.positions import contradictory_pairs, inconsistency, position_bias
from evaluand.metrics.ratings.win_rates import WinRates, win_rates
from evaluand.store.tables import FAILED, SCORED, SKIPPED, STYLE

NOBODY, A, B, BOTH = range(4)  # whose response is missing


@dataclass(frozen=True, kw_only=True)
class MatchTable:
    """Judgements of pairs, in arrays with an entry for each example, replication, pair, order and judge.

    Attributes:
        systems: the labels of the systems.
        judges: the names of the judges.
        a, b: numbers of systems, a < b.
        outcome: a's share of the win; NaN where there is none.
        a_first: whether the judge saw the response of a first.
        ordered: whether the order is known.
        equal: whether the responses are equal, so that no judge was asked.
        skipped: whether the match was not to be judged.
        failed: whether the judge or a system failed.
        missing: whose response is missing: `NOBODY`, `A`, `B` or `BOTH`.
        cluster: the key of the example, or of the cluster that its dataset declares.
        weight: of the example; NaN where its dataset declares none.
        judge: a position in the names of the judges.
        style: entries × sides × the counts of `STYLE`; NaN where unknown.
        example: a number that all matches on an example share.
        pair: a number that both orders of a pair share.
    """

    systems: Sequence[str]
    judges: Sequence[str]
    a: np.ndarray
    b: np.ndarray
    outcome: np.ndarray
    a_first: np.ndarray
    ordered: np.ndarray
    equal: np.ndarray
    skipped: np.ndarray
    failed: np.ndarray
    missing: np.ndarray
    cluster: np.ndarray
    weight: np.ndarray
    judge: np.ndarray
    style: np.ndarray
    example: np.ndarray
    pair: np.ndarray

    def __len__(self) -> int:
        return len(self.a)

    def take(self, chosen: np.ndarray) -> MatchTable:
        """The chosen entries, by mask or position."""
        names = [each.name for each in fields(self) if each.name not in ("systems", "judges")]
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    @property
    def known(self) -> np.ndarray:
        """The entries with an outcome."""
        return np.asarray(~np.isnan(self.outcome))

    def shares(self) -> np.ndarray:
        """The part of a match that each entry is: both orders of a pair are one match."""
        return np.asarray(1.0 / np.bincount(self.pair)[self.pair] if len(self) else np.zeros(0))

    def contradictory(self) -> np.ndarray:
        """The entries of pairs with opposite winners in their two orders."""
        known = self.known & self.ordered
        return np.isin(self.pair, contradictory_pairs(self.outcome[known], self.a_first[known], self.pair[known]))


def gather(sets: Sequence[Matches]) -> MatchTable:
    """The table of all matches of some sets.

    Raises:
        NotFound: a dataset is not in the store.
    """
    systems = list(dict.fromkeys(label for each in sets for label in each.systems))
    judges: dict[int, str] = {}
    parts = [_read_set(each, systems, judges) for each in sets]
    _warn_about_changed_runs(sets)
    _warn_about_changed_judgements(sets, parts)
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    [arrays["pair"]], [arrays["example"]] = (number_rows([arrays[name]]) for name in ("pair", "example"))
    of_dataset = np.repeat(["dataset" in each.manifest["spec"] for each in sets], [len(part["a"]) for part in parts])
    for name in ("cluster", "weight"):
        arrays[name] = _share_by_example(arrays[name], arrays["example"], of_dataset)
    table = MatchTable(systems=systems, judges=[*judges.values()], **arrays)
    return table if len(sets) == 1 else _count_once(table, [len(part["a"]) for part in parts])


def _share_by_example(values: np.ndarray, example: np.ndarray, of_dataset: np.ndarray) -> np.ndarray:
    """The values, with those of the first set over a dataset for battles on the same example."""
    if of_dataset.all() or not of_dataset.any():
        return values
    known, first = np.unique(example[of_dataset], return_index=True)
    place = np.minimum(np.searchsorted(known, example), len(known) - 1)
    is_shared = ~of_dataset & (known[place] == example)
    return np.where(is_shared, values[of_dataset][first][place], values)


_COLUMNS: Final = [INDEX, "replication", "a", "b", "order", "status", "missing", "outcome", "first", "equal", "judge"]


def _read_set(matches: Matches, systems: Sequence[str], judges: dict[int, str]) -> dict[str, np.ndarray]:
    """The arrays of a `MatchTable`; `example` and `pair` are still rows of integers by which these are identified."""
    table = matches.table([*_COLUMNS, "style_a", "style_b"])
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    numbers = np.array([systems.index(label) for label in matches.systems])
    one, other = numbers[column["a"].to_numpy()], numbers[column["b"].to_numpy()]
    flipped, a, b = one > other, np.minimum(one, other), np.maximum(one, other)
    status, outcome = column["status"], column["outcome"].to_numpy(zero_copy_only=False).astype(np.float64)
    outcome[~pc.equal(status, SCORED).to_numpy(zero_copy_only=False)] = np.nan
    a_first = pc.equal(column["order"], "ab").to_numpy(zero_copy_only=False) != flipped
    ordered = np.isnan(outcome) | column["first"].is_valid().to_numpy(zero_copy_only=False)
    sides = pc.index_in(column["missing"], pa.array(["a", "b", "both"]))
    missing = 1 + pc.fill_null(sides, -1).to_numpy()
    style = np.stack([_read_style(column[f"style_{side}"]) for side in "ab"], axis=1)
    style[flipped] = style[flipped, ::-1]
    judge, judge_keys = _number_judges(matches, column["judge"], judges)
    keys = read_example_keys(matches)
    place = np.searchsorted(keys.index, column[INDEX].to_numpy())
    cluster, weight = _read_dataset_columns(matches, keys)
    judged_by = np.array(judge_keys.keys)[judge_keys.place]
    pair = np.column_stack([keys.key[place], judged_by, column["replication"].to_numpy().astype(np.int64), a, b])
    is_planned = "schedule" in matches.manifest["spec"]
    # several judgements of one judge, on one example and in one order, are several matches: the first in one order
    # belongs to the first in the other, and one whose order is unknown is separate
    repeat = count_earlier(np.column_stack([pair, np.where(ordered, a_first, 2)]))
    repeat = np.zeros_like(repeat) if is_planned else np.where(ordered, repeat, -1 - repeat)
    return {
        "a": a,
        "b": b,
        "outcome": np.where(flipped, 1.0 - outcome, outcome),
        "a_first": a_first,
        "ordered": ordered,
        "equal": column["equal"].to_numpy(zero_copy_only=False),
        "skipped": pc.equal(status, SKIPPED).to_numpy(zero_copy_only=False),
        "failed": pc.equal(status, FAILED).to_numpy(zero_copy_only=False),
        "missing": np.where(flipped, _FLIPPED[missing], missing),
        "cluster": cluster[place],
        "weight": weight[place],
        "judge": judge,
        "style": style,
        "example": keys.key[place],
        "pair": np.column_stack([pair, repeat]),
    }


_FLIPPED: Final = np.array([NOBODY, B, A, BOTH])


def _read_style(column: pa.StructArray) -> np.ndarray:
    """Entries × counts; NaN where there is none."""
    return np.column_stack([count.to_numpy(zero_copy_only=False).astype(np.float64) for count in column.flatten()])


def _number_judges(matches: Matches, people: pa.Array, judges: dict[int, str]) -> tuple[np.ndarray, JudgeKeys]:
    """For each entry the place of its judge in `judges` (key → name), which is extended, and the keys."""
    found = read_judge_keys(matches, people)
    for place in np.unique(found.place).tolist():
        key, person = found.keys[place], found.people[place]
        if key not in judges:
            source = file_origin(matches)
            name = str(person or (judge_name(matches.manifest) if source is None else source["source"]))
            names = (name if n == 1 else f"{name} ({n})" for n in itertools.count(1))
            judges[key] = next(each for each in names if each not in judges.values())
    numbers = {key: number for number, key in enumerate(judges)}
    return np.array([numbers.get(key, -1) for key in found.keys])[found.place], found


def _read_dataset_columns(matches: Matches, keys: ExampleKeys) -> tuple[np.ndarray, np.ndarray]:
    """The cluster and weight of each example, as far as its dataset declares them. Equal examples are one cluster."""
    cluster, weight = keys.key[:, 0], np.full(len(keys.index), np.nan)
    dataset_id = matches.manifest["spec"].get("dataset")
    if dataset_id is None:
        return cluster, weight
    dataset = Dataset.stored(matches.store, dataset_id)
    if (name := dataset.roles.cluster) is not None:
        cluster = cluster_keys(_read_column(dataset, name)).to_numpy()
    if (name := dataset.roles.weight) is not None:
        weight = _read_column(dataset, name).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return cluster, weight


def _read_column(dataset: Dataset, name: str) -> pa.Array:
    parts = [batch.column(0) for batch in dataset.columns([name])]
    return pa.chunked_array(parts, dataset.schema.field(name).type).combine_chunks()


def _count_once(table: MatchTable, lengths: Sequence[int]) -> MatchTable:
    """The table without the judgements that a later set has too."""
    if not len(table):
        return table
    key = table.pair * 2 + table.a_first
    decides = np.full(int(key.max()) + 1, -1, np.int64)
    known = table.known
    borders = np.cumsum([0, *lengths])
    for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        entries = np.arange(start, stop)
        earlier = decides[key[entries]]
        better = known[entries] | (earlier < 0) | ~known[earlier]
        decides[key[entries[better]]] = entries[better]
    return table.take(np.sort(decides[decides >= 0]))


def _warn_about_changed_runs(sets: Sequence[Matches]) -> None:
    """Warns where one label is that of different runs."""
    runs: dict[str, tuple[str, Matches]] = {}
    for each in sets:
        for label, run in zip(each.systems, each.manifest["spec"].get("runs", ()), strict=False):
            first, where = runs.setdefault(label, (run, each))
            if first != run:
                warn(
                    f"system {label!r} is another run in matches {each.id[:12]} than in matches {where.id[:12]}; where "
                    "both have a match, the later one counts; give the runs different labels to rate them separately"
                )
                return


def _warn_about_changed_judgements(sets: Sequence[Matches], parts: Sequence[dict[str, np.ndarray]]) -> None:
    """Warns where files with one name, and so with one judge, say something else about the same matches."""
    for (one, first), (other, second) in itertools.combinations(zip(sets, parts, strict=True), 2):
        origin = file_origin(one)
        if origin is None or origin != file_origin(other):
            continue
        keys = [np.column_stack([each["pair"], each["a_first"], each["ordered"]]) for each in (first, second)]
        numbers, other_numbers = number_rows(keys)
        _, ours, theirs = np.intersect1d(numbers, other_numbers, return_indices=True)
        outcomes = first["outcome"][ours], second["outcome"][theirs]
        differ = ~np.isclose(*outcomes, rtol=0.0, atol=1e-9, equal_nan=True)
        is_asked = ~(first["equal"] | first["skipped"])[ours] & (first["pair"][ours, _JUDGE] == number_of(origin))
        if n := int((differ & is_asked).sum()):
            warn(
                f"{plural(n, 'judgement')} in matches {_battles_name(one)} and {_battles_name(other)} differ, and the"
                " later count, since both files have one name; if they have different judges, add a column judge or"
                " rename a file"
            )


_JUDGE: Final = 2  # its place in the key of a pair


def _battles_name(matches: Matches) -> str:
    """Its file and its name, as far as it is known, and its id."""
    source, id = matches.manifest["provenance"]["source"], matches.id[:12]
    return f"{source} ({matches.name}, {id})" if matches.name else f"{source} ({id})"


_DIGITS: Final = 10  # of stored numbers that are significant: the same where linear algebra rounds otherwise

Row = dict[str, Any]


def compute_tables(matches: MatchTable, method: RatingMethod, confidence: float) -> dict[str, list[Row]]:
    """The rows of all tables.

    Raises:
        DataError: matches have no outcome and `missing` refuses that.
        SpecError: the matches do not have what the method needs.
    """
    decided = decide_missing(matches, method)
    if method.weighted:
        decided = _drop_weightless(decided)
    rows, missing = _as_rows(decided, method, _weights(decided, method))
    rates = win_rates(rows, confidence=confidence)
    if method.kind == "bradley_terry":
        estimates = estimate_strengths(rows, method, confidence, matches.systems)
    elif method.kind == "equal_length":
        is_rated = _is_rated(decided, method)
        rated, shares = decided.take(is_rated), decided.shares()[is_rated]
        lengths = _read_counts(rated, LENGTH)
        baseline = str(method.baseline)
        estimates = estimate_equal_length(rows, shares, lengths, matches.systems, baseline, confidence)
    else:
        estimates = estimate_win_rates(rows, rates, matches.systems, method.baseline, confidence)
    estimates = replace(estimates, reason=_explain_absences(estimates.reason, matches, rows, method))
    differences = _difference_rows(estimates, matches.systems)
    order, ranks, letters = _rank(estimates, differences, confidence)
    played = _as_rows(decided, method, decided.shares()) if method.weighted else (rows, missing)
    is_skipped = matches.skipped & ~matches.known & (matches.missing != NOBODY)
    shown, weighed = count_matches(played[0]), count_matches(rows)
    counts = {
        "n_missing": played[1],
        "n_skipped": _sum_by_pair(matches, matches.shares(), is_skipped),
        **{name: shown.square(side) for name, side in _SIDES.items()},
        # the same with the weights of the examples, from which bounds of win rates follow
        "weight": weighed.square("n"),
        "score": weighed.square("score"),
        "unknown": missing,
    }
    relevant_rates, relevant = rates, counts
    if method.baseline is not None:
        is_base = np.arange(len(matches.systems)) == find_system(method.baseline, matches.systems)
        involved = is_base[:, None] | is_base
        relevant_rates = win_rates(rows.select(involved[rows.a, rows.b]), confidence=confidence)
        relevant = {name: np.where(involved, square, 0.0) for name, square in counts.items()}
    tables: dict[str, list[Row]] = {
        "ratings": [
            _rating_row(matches.systems[i], estimates, i, relevant_rates, relevant)
            | {"rank": ranks.get(i), "letters": letters.get(i)}
            for i in order
        ],
        "win_rates": [*_win_rate_rows(matches.systems, rates, counts, order)],
        "differences": _order_differences(differences, order, matches.systems),
        "parameters": [dict(each) for each in estimates.parameters],
        "bias": [*_bias_rows(matches, confidence)],
    }
    return {name: [_storable(row) for row in rows_] for name, rows_ in tables.items()}


def _storable(row: Row) -> Row:
    """A row without infinite and undefined numbers, rounded to the digits that all machines share."""
    for name, value in row.items():
        if isinstance(value, float):
            row[name] = float(f"{value:.{_DIGITS}g}") + 0.0 if math.isfinite(value) else None
    return row


def decide_missing(matches: MatchTable, method: RatingMethod) -> MatchTable:
    """The judgements without those that were not to be made, and with the outcomes that `missing` gives."""
    asked = matches.take(~matches.skipped | matches.known)
    unknown = ~asked.known
    if method.missing == "refuse" and unknown.any():
        raise DataError(
            f"{plural(int(unknown.sum()), 'match', 'matches')} of {len(asked):,} without an outcome, and"
            " missing=refuse; judge them again with retry_failed, or use missing=leave_out or lose"
        )
    if method.missing == "lose":
        lost = unknown & (asked.missing > 0) & (asked.missing < BOTH)
        asked.outcome[lost] = np.where(asked.missing[lost] == A, 0.0, 1.0)
    return asked


def _sum_by_pair(matches: MatchTable, weight: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Systems × systems: the weight of the chosen judgements."""
    systems = len(matches.systems)
    pairs = matches.a[chosen] * systems + matches.b[chosen]
    square = np.bincount(pairs, weight[chosen], systems * systems).reshape(systems, systems)
    return np.asarray(square + square.T)


def _drop_weightless(matches: MatchTable) -> MatchTable:
    """The judgements without those of weight 0, which do not exist for weighted ratings."""
    unknown = int(np.isnan(matches.weight).sum())
    if unknown:
        raise SpecError(
            f"weighted needs weights, and the examples of {plural(unknown, 'match', 'matches')} have none; name the"
            " dataset's column under weight, or leave weighted out"
        )
    return matches.take(matches.weight > 0)


def _weights(matches: MatchTable, method: RatingMethod) -> np.ndarray:
    """The weight of each judgement; the mean of those of examples is 1, whatever their unit, as penalties need it."""
    shares, rated = matches.shares(), _is_rated(matches, method)
    if not method.weighted or not rated.any():
        return shares
    return np.asarray(shares * matches.weight / np.average(matches.weight[rated], weights=shares[rated]))


def _as_rows(matches: MatchTable, method: RatingMethod, weight: np.ndarray) -> tuple[MatchRows, np.ndarray]:
    """The matches to be rated, and the weight of those without an outcome: systems × systems."""
    outcome, rated = matches.outcome.copy(), _is_rated(matches, method)
    if method.contradictory != "average":
        outcome[matches.contradictory()] = 0.5
    if method.outcomes == "discrete":
        outcome = np.where(np.isnan(outcome), outcome, (np.sign(outcome - 0.5) + 1) / 2)
    rows = MatchRows.read(
        matches.a[rated],
        matches.b[rated],
        outcome[rated],
        matches.cluster[rated],
        systems=len(matches.systems),
        weight=weight[rated],
        covariates=_covariates(matches.take(rated), method.covariates),
    )
    return rows, _sum_by_pair(matches, weight, ~matches.known)


def _is_rated(matches: MatchTable, method: RatingMethod) -> np.ndarray:
    """The judgements that count: those with an outcome, unless contradictory pairs are dropped."""
    if method.contradictory != "drop":
        return matches.known
    return np.asarray(matches.known & ~matches.contradictory())


def _covariates(matches: MatchTable, names: Sequence[str]) -> np.ndarray:
    """How much more of each covariate a has than b."""
    columns = []
    for name in names:
        if name == POSITION:
            unknown = int((~matches.ordered & ~matches.equal).sum())
            if unknown:
                raise SpecError(f"covariate position: the order of {plural(unknown, 'match', 'matches')} is unknown")
            is_judged = ~matches.equal & (matches.missing == NOBODY)  # of others, no judge saw an order
            columns.append(np.where(is_judged, np.where(matches.a_first, 1.0, -1.0), 0.0))
            continue
        sides = _read_counts(matches, name)
        columns.append(relative_differences(sides[:, 0], sides[:, 1]))
    return np.column_stack(columns) if columns else np.zeros((len(matches), 0))


def _read_counts(matches: MatchTable, name: str) -> np.ndarray:
    """Judgements × sides: what a covariate counts; NaN only where there is no outcome either."""
    sides = matches.style[:, :, [field.name for field in STYLE].index(COVARIATES[name])]
    unknown = np.isnan(sides).any(axis=1) & matches.known
    if unknown.any():
        n = plural(int(unknown.sum()), "match", "matches")
        raise SpecError(f"{name}: {n} without the length and style of the responses")
    return np.asarray(sides)


def _explain_absences(
    reasons: Sequence[str | None], matches: MatchTable, rows: MatchRows, method: RatingMethod
) -> list[str | None]:
    """The reasons; for a system without a rated match, why it has none."""
    base = None if method.baseline is None else find_system(method.baseline, matches.systems)
    involved = np.ones(len(matches), np.bool_) if base is None else (matches.a == base) | (matches.b == base)
    against = "" if base is None else f' against "{matches.systems[base]}"'
    relevant = rows if base is None else rows.select((rows.a == base) | (rows.b == base))
    met = np.bincount(np.concatenate([relevant.a, relevant.b]), minlength=len(matches.systems))
    explained = [*reasons]
    for system in np.flatnonzero(met == 0).tolist():
        if system != base:
            found = matches.take(involved & ((matches.a == system) | (matches.b == system)))
            explained[system] = _explain_absence(f'"{matches.systems[system]}"', against, found)
    return explained


def _explain_absence(name: str, against: str, found: MatchTable) -> str:
    """Why no match of a system is rated: there is none, or what became of each."""
    if not len(found):
        return f"{name} has no matches{against}"
    left = np.ones(len(found), np.bool_)
    counts = []
    for what, chosen in (
        ("contradictory", found.known),
        ("without a response", found.missing != NOBODY),
        ("failed", found.failed),
        ("not judged", found.skipped),
        ("abstained", left),
    ):
        counts.append((int((left & chosen).sum()), what))
        left = left & ~chosen
    listed = ", ".join(f"{n:,} {what}" for n, what in counts if n)
    verb = "counts" if found.known.any() else "has an outcome"
    return f"no match of {name}{against} {verb} ({listed})"


def _difference_rows(estimates: Estimates, systems: Sequence[str]) -> dict[tuple[int, int], Row]:
    """Every two systems once: the first minus the second."""
    sources = {"difference": "difference", "low": "difference_low", "high": "difference_high", "p": "p"}
    rows: dict[tuple[int, int], Row] = {}
    for pair in itertools.combinations(range(len(systems)), 2):
        numbers = {name: float(getattr(estimates, source)[pair]) for name, source in sources.items()}
        rows[pair] = numbers | {"test": estimates.test, "reason": _difference_reason(estimates, *pair, numbers)}
    p = np.array([row["p"] for row in rows.values()], np.float64)
    several = len(systems) > 2
    by_shaffer = shaffer(p, [0] * len(p), {0: len(systems)}) if several else np.full(len(p), math.nan)
    for row, *adjusted in zip(rows.values(), holm(p).tolist(), by_shaffer.tolist(), strict=True):
        row |= dict(zip(("p_holm", "p_shaffer"), adjusted, strict=True))
    return rows


def _difference_reason(estimates: Estimates, i: int, j: int, numbers: Row) -> str | None:
    if (i, j) in estimates.difference_reason:
        return estimates.difference_reason[i, j]
    unrated = [each for each in (i, j) if math.isnan(estimates.rating[each])]
    if unrated:
        return " and ".join(str(estimates.reason[each]) for each in unrated)
    if math.isinf(numbers["low"]) or math.isinf(numbers["high"]):
        return "the interval is open: in too many draws of the examples one of them wins every match"
    if math.isnan(numbers["low"]) or math.isnan(numbers["high"]):
        return NO_SPREAD
    return "the examples show no spread, so there is no p value" if math.isnan(numbers["p"]) else None


def _rank(
    estimates: Estimates, differences: dict[tuple[int, int], Row], confidence: float
) -> tuple[list[int], dict[int, int], dict[int, str]]:
    """The systems best first, then those without a rating; ranks and letters of those that can be ranked."""
    rated = np.flatnonzero(~np.isnan(estimates.rating)).tolist()
    rated.sort(key=lambda system: -float(estimates.rating[system]))
    unrated = np.flatnonzero(np.isnan(estimates.rating)).tolist()
    if estimates.difference_reason:
        return rated + unrated, {}, {}
    adjusted = "p_shaffer" if len(estimates.rating) > 2 else "p_holm"
    differing = {
        frozenset(pair)
        for pair, row in differences.items()
        if row[adjusted] <= 1 - confidence + 1e-12  # never of NaN
    }
    ranks = {
        system: 1
        + sum(
            frozenset((system, other)) in differing and estimates.rating[other] > estimates.rating[system]
            for other in rated
        )
        for system in rated
    }
    return rated + unrated, ranks, assign_letters(rated, differing)


_Counts = Mapping[str, np.ndarray]  # counts of matches, each systems × systems
_SIDES: Final[Mapping[str, Side]] = {"n": "n", "won": "wins", "tied": "ties", "lost": "losses"}


def _counts_at(counts: _Counts, place: int | tuple[int, int]) -> dict[str, float]:
    """The counts of a system, or of a system against another one."""
    return {name: float(np.sum(counts[name][place])) for name in (*_SIDES, "n_missing", "n_skipped")}


def _rating_row(label: str, estimates: Estimates, system: int, rates: WinRates, counts: _Counts) -> Row:
    weight, unknown, score = (counts[name][system] for name in ("weight", "unknown", "score"))
    met = weight + unknown > 0
    total = (weight + unknown)[met]
    numbers = {
        "strength": estimates.strength,
        "rating": estimates.rating,
        "standard_error": estimates.error,
        "low": estimates.low,
        "high": estimates.high,
        "win_rate": rates.average.value,
        "win_rate_low": rates.average.low,
        "win_rate_high": rates.average.high,
    }
    return {
        "system": label,
        **{name: math.nan if column is None else float(column[system]) for name, column in numbers.items()},
        "win_rate_worst": float(np.mean(score[met] / total)) if met.any() else math.nan,
        "win_rate_best": float(np.mean((score + unknown)[met] / total)) if met.any() else math.nan,
        **_counts_at(counts, system),
        "opponents": int(rates.opponents[system]),
        "examples": int(rates.average_examples[system]),
        "reason": estimates.reason[system],
    }


def _win_rate_rows(systems: Sequence[str], rates: WinRates, counts: _Counts, order: Sequence[int]) -> Iterator[Row]:
    for pair in itertools.permutations(order, 2):
        yield {
            "a": systems[pair[0]],
            "b": systems[pair[1]],
            "win_rate": float(rates.rate.value[pair]),
            "low": round(float(rates.rate.low[pair]), _DIGITS),
            "high": round(float(rates.rate.high[pair]), _DIGITS),
            **_counts_at(counts, pair),
            "examples": int(rates.examples[pair]),
        }


def _order_differences(
    differences: dict[tuple[int, int], Row], order: Sequence[int], systems: Sequence[str]
) -> list[Row]:
    """The differences in the order of the ranking, the better system first."""
    rows = []
    for i, j in itertools.combinations(order, 2):
        row = dict(differences[min(i, j), max(i, j)])
        if i > j:
            row |= {"difference": -row["difference"], "low": -row["high"], "high": -row["low"]}
        rows.append({"a": systems[i], "b": systems[j]} | row)
    return rows


def _bias_rows(matches: MatchTable, confidence: float) -> Iterator[Row]:
    """Position bias and inconsistency of all judges together, and of each if there are several."""
    judged = matches.take(matches.known & matches.ordered & ~matches.equal)
    yield from _bias_of(judged, None, confidence)
    if len(matches.judges) < 2:
        return
    order = np.argsort(judged.judge, kind="stable")
    ends = np.searchsorted(judged.judge[order], np.arange(len(matches.judges) + 1))
    for name, start, stop in zip(matches.judges, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if start < stop:
            yield from _bias_of(judged.take(order[start:stop]), name, confidence)


def _bias_of(judged: MatchTable, judge: str | None, confidence: float) -> Iterator[Row]:
    if not len(judged):
        return
    bias = position_bias(judged.a, judged.b, judged.outcome, judged.a_first, judged.cluster, confidence=confidence)
    found = inconsistency(judged.outcome, judged.a_first, judged.pair, judged.cluster, confidence=confidence)
    contrary = found.first_twice, found.contradictory - found.first_twice, found.half
    for measure, each, n, counts in (
        ("position_bias", bias, bias.first + bias.second + bias.ties, (bias.first, bias.second, bias.ties)),
        ("inconsistency", found, found.pairs, contrary),
    ):
        yield {
            "judge": judge,
            "measure": measure,
            "share": each.share,
            "low": each.low,
            "high": each.high,
            "n": float(n),
            **dict(zip(("first", "second", "neither"), map(float, counts), strict=True)),
            "n_left_out": each.one_order,
        }
