"""`rate`: ratings of systems from one or several sets of matches, stored as `Ratings`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Unpack

import numpy as np
import pyarrow as pa

from evaluand.comparison.verdict import printable
from evaluand.core import identity
from evaluand.core.errors import SpecError, nearest, warn
from evaluand.core.provenance import provenance
from evaluand.core.text.html_table import html_notes, html_table
from evaluand.engine.keyed_work import Artifact, Receipt
from evaluand.matches.matches import BY_PEOPLE, Matches, file_origin
from evaluand.matches.ratings.method import RatingMethod, RatingParameters
from evaluand.matches.ratings.tables import compute_tables, gather
from evaluand.matches.ratings.wording import (
    bias_texts,
    count_texts,
    find_only_opponent,
    format_rating,
    is_at_equal_length,
    is_share,
    rating_label,
)
from evaluand.matches.schedule import find_system
from evaluand.metrics.base.metric import check_confidence
from evaluand.store.sealing import seal_tables, tables_digest
from evaluand.store.store import Store, check_name, exists, give_name
from evaluand.store.tables import BIAS, DIFFERENCES, PARAMETERS, RATINGS, WIN_RATES

TABLES: Final[Mapping[str, pa.Schema]] = {
    "ratings": RATINGS,
    "win_rates": WIN_RATES,
    "differences": DIFFERENCES,
    "parameters": PARAMETERS,
    "bias": BIAS,
}


class Ratings(Artifact):
    """Ratings in a store."""

    kind = "ratings"

    def __repr__(self) -> str:
        return f"Ratings({self.id[:12]}, {', '.join(map(printable, self.systems))})"

    def __str__(self) -> str:
        """The signature, and a line for each system, best first."""
        lines = [self.signature]
        for row in self.ratings:
            if row["rating"] is None:
                lines.append(f"{row['system']}: no rating, {row['reason']}")
                continue
            counts = f"won {row['won']:g}, tied {row['tied']:g}, lost {row['lost']:g}"
            missing = f", {row['n_missing']:g} missing" if row["n_missing"] else ""
            missing += f", {row['n_skipped']:g} skipped" if row["n_skipped"] else ""
            letters = f" {row['letters']}" if row["letters"] else ""
            rating = f"{format_rating(row, self.is_share)}{letters}"
            if self.method.kind == "equal_length" and row["win_rate"] is not None:
                rating = f"win rate at equal length {rating}; win rate {100 * row['win_rate']:.1f} %"
            lines.append(f"{row['system']}: {rating}; {counts}{missing}")
        return "\n".join(map(printable, lines))

    def _repr_html_(self) -> str:
        """The ranking, the win rates and the bias of the judges, as tables of a notebook."""
        facts = self.to_dict()
        rows = facts["ratings"]
        reasons = dict.fromkeys(f"{row['system']}: {row['reason']}" for row in rows if row["reason"])
        rating = rating_label(facts["method"]) if is_at_equal_length(facts) else "rating"
        heads = ["system", "rank", "alike", rating, "win rate", "won", "tied", "lost", "missing", "skipped"]
        return "".join(
            (
                html_table(heads, (_ranking_cells(row, is_share(facts)) for row in rows), facts["signature"]),
                html_notes([*reasons, *count_texts(facts)]),
                _win_rates(facts),
                html_notes(bias_texts(row for row in facts["bias"] if row["judge"] is None)),
            )
        )

    @property
    def systems(self) -> list[str]:
        """The labels of the systems, in the order in which the matches name them."""
        return list(self.manifest["spec"]["systems"])

    @property
    def confidence(self) -> float:
        """Of all intervals, and of the statement that two systems differ."""
        return float(self.manifest["spec"]["confidence"])

    @property
    def method(self) -> RatingMethod:
        """How the systems were rated."""
        return RatingMethod.from_spec(self.manifest["spec"]["method"])

    @property
    def signature(self) -> str:
        """All that defines the numbers, in one line."""
        return self.method.signature(self.confidence)

    @property
    def is_share(self) -> bool:
        """Whether ratings are shares of wins, from 0 to 1, and not points."""
        return self.method.kind != "bradley_terry"

    @property
    def matches(self) -> list[Matches | None]:
        """The matches that were rated; None where the store has lost them."""
        ids = self.manifest["provenance"]["matches"]
        return [Matches(self.store, id) if exists(self.store, "matches", id) else None for id in ids]

    @property
    def ratings(self) -> list[dict[str, Any]]:
        """One row per system, best first: the columns of `store.tables.RATINGS`."""
        return self.read_rows("ratings")

    @property
    def win_rates(self) -> list[dict[str, Any]]:
        """Each system against each other one: the columns of `store.tables.WIN_RATES`."""
        return self.read_rows("win_rates")

    @property
    def differences(self) -> list[dict[str, Any]]:
        """Every two systems: the columns of `store.tables.DIFFERENCES`."""
        return self.read_rows("differences")

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """What the method estimates besides ratings: the columns of `store.tables.PARAMETERS`."""
        return self.read_rows("parameters")

    @property
    def bias(self) -> list[dict[str, Any]]:
        """Position bias and inconsistency of the judges: the columns of `store.tables.BIAS`."""
        return self.read_rows("bias")

    def table(self, name: str = "ratings") -> pa.Table:
        """One of the tables `ratings`, `win_rates`, `differences`, `parameters` and `bias`.

        Raises:
            SpecError: there is no such table.
        """
        if name not in TABLES:
            raise SpecError(f"ratings have no table {name!r}{nearest(name, list(TABLES))}: {', '.join(TABLES)}")
        return pa.Table.from_batches(self.store.read("ratings", self.id, name), TABLES[name])

    def read_rows(self, table: str) -> list[dict[str, Any]]:
        """The stored rows of a table."""
        rows: list[dict[str, Any]] = self.table(table).to_pylist()
        return rows

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-like data."""
        return {
            "id": self.id,
            "digest": self.digest,
            "name": self.name,
            "signature": self.signature,
            "confidence": self.confidence,
            "systems": self.systems,
            "method": self.manifest["spec"]["method"],
            "rating_label": rating_label(self.manifest["spec"]["method"]),
            "matches": list(self.manifest["provenance"]["matches"]),
            **{table: self.read_rows(table) for table in TABLES},
        }


def stored_digest(store: Store, id: str) -> tuple[str, dict[str, int]]:
    """The digest and the row counts of stored ratings, computed from the rows as they are now."""
    ratings = Ratings(store, id)
    tables = {table: ratings.read_rows(table) for table in TABLES}
    return tables_digest(tables.values()), {table: len(rows) for table, rows in tables.items()}


_MATRIX: Final = 10  # the most systems whose win rates fit the width of a cell


def _ranking_cells(row: Mapping[str, Any], share: bool) -> Iterator[str]:
    yield row["system"]
    yield "–" if row["rank"] is None else str(row["rank"])
    yield row["letters"] or ""
    yield format_rating(row, share)
    yield _percent(row["win_rate"])
    yield from (f"{row[name]:,g}" for name in ("won", "tied", "lost", "n_missing", "n_skipped"))


def _win_rates(facts: Mapping[str, Any]) -> str:
    systems = [row["system"] for row in facts["ratings"]]
    if not 1 < len(systems) <= _MATRIX or (len(systems) > 2 and find_only_opponent(facts["win_rates"]) is not None):
        return ""
    rates = {(row["a"], row["b"]): row["win_rate"] for row in facts["win_rates"]}
    rows = ([a, *("" if a == b else _percent(rates.get((a, b))) for b in systems)] for a in systems)
    return html_table(["win rate \\ against", *systems], rows)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def rate(
    *matches: Matches,
    method: RatingMethod | str = "bradley_terry",
    confidence: float = 0.95,
    name: str | None = None,
    origin: dict[str, Any] | None = None,
    **parameters: Unpack[RatingParameters],
) -> Ratings:
    """Rates the systems of some matches; ratings that are already stored are returned.

    Several sets of matches count together, so that an earlier comparison is extended by a later one: systems with the
    same label are one system, and what the same judge said about the same pair on the same example counts once.

    Args:
        matches: one set or several, of one store.
        method: `bradley_terry`, `win_rate`, `equal_length`, or a `RatingMethod` with all of its parameters.
        confidence: of the intervals and of the statement that two systems differ.
        name: a name for the ratings.
        origin: where the request came from, for provenance.
        parameters: those of `RatingMethod`: `ties`, `penalty`, `covariates`, `baseline`, `outcomes`, `contradictory`,
            `missing`, `weighted`, `replicates` and `seed`.

    Raises:
        SpecError: a parameter is wrong, or the matches do not have what the method needs.
        DataError: matches have no outcome, and `missing` refuses that.

    Example:
        >>> from evaluand import Dataset, Matcher, Runner
        >>> data = Dataset.from_rows([{"id": str(i), "input": "ab" * (i % 3)} for i in range(30)])
        >>> runner = Runner()
        >>> tasks = str.upper, lambda text: text + "!", lambda text: text[:1] + "!!"
        >>> shorter = lambda first, second: "first" if len(first) < len(second) else "second"
        >>> matches = Matcher().match([runner.run(task, data) for task in tasks], shorter, labels=["a", "b", "c"])
        >>> print(rate(matches))
        bradley_terry v2 interval=bootstrap(1000,0) 95%
        a: 1189 [1131, 1278] a; won 50, tied 0, lost 10
        c: 952 [838, 1047] b; won 25, tied 0, lost 35
        b: 859 [823, 891] b; won 15, tied 0, lost 45
    """
    check_confidence("rate", confidence)
    if name is not None:
        check_name(name)
    chosen = _read_method(method, parameters)
    sets = _check_matches(matches)
    store = sets[0].store
    systems = list(dict.fromkeys(label for each in sets for label in each.systems))
    check_systems(chosen, systems)
    spec: dict[str, Any] = {
        "matches": [each.digest for each in sets],
        "match_ids": [each.id for each in sets],
        "sets": [_identify_set(each) for each in sets],
        "systems": systems,
        "confidence": float(confidence),
        "method": chosen.spec,
    }
    id = identity.artifact_id("ratings", spec)
    stored = store.is_sealed("ratings", id)
    if not stored:
        table = gather(sets)
        if not chosen.weighted and len(np.unique(table.weight[~np.isnan(table.weight)])) > 1:
            warn(
                "the examples have weights, which are not used; rate with weighted=True (--weighted) to count each"
                " match by them"
            )
        tables = compute_tables(table, chosen, spec["confidence"])
        batches = {name_: pa.RecordBatch.from_pylist(tables[name_], schema) for name_, schema in TABLES.items()}
        made_from = provenance(origin) | {"matches": [each.id for each in sets]}
        seal_tables(store, "ratings", id, spec, batches, name, made_from)
    give_name(store, name, "ratings", id, origin or {})
    receipt = Receipt(1, kept=1, why="made before") if stored else Receipt(1, called=1)
    return Ratings(store, id, receipt)


def _read_method(method: RatingMethod | str, parameters: RatingParameters) -> RatingMethod:
    known = [*RatingParameters.__annotations__]
    for name in parameters:
        if name not in known:
            raise SpecError(f"rate has no parameter {name!r}{nearest(name, [*known, 'method', 'confidence', 'name'])}")
    if not isinstance(method, RatingMethod):
        return RatingMethod(kind=method, **parameters)
    if parameters:
        raise SpecError(f"{next(iter(parameters))} is a parameter of the RatingMethod that is the method; set it there")
    return method


def check_systems(method: RatingMethod, systems: Sequence[str]) -> None:
    """Refuses a method that names a system that has no matches.

    Raises:
        SpecError: no system is called so.
    """
    if method.baseline is not None:
        find_system(method.baseline, systems)


def _check_matches(matches: Sequence[Any]) -> list[Matches]:
    """The distinct sets of matches, in one store."""
    if not matches or not all(isinstance(each, Matches) for each in matches):
        raise SpecError("rate takes matches: write rate(matches), or `evaluand rate NAME` in a shell for stored ones")
    store = matches[0].store
    for each in matches:
        if not exists(store, "matches", each.id):
            raise SpecError(f"{each!r} is in another store; matches are rated in one store")
        if not store.is_sealed("matches", each.id):
            raise SpecError(f"matches {each.id} are not finished; continue them before they are rated")
    return list({(each.digest, _identify_set(each)): each for each in matches}.values())


def _identify_set(matches: Matches) -> str:
    """A digest of what decides, besides their rows, how matches are counted and whether gates on them need a card."""
    spec = matches.manifest["spec"]
    parts = {name: spec.get(name) for name in ("systems", "runs", "dataset", "judge", "battles")}
    parts |= {BY_PEOPLE: True} if spec.get(BY_PEOPLE) else {}
    return identity.digest(parts | {"file": file_origin(matches)}).hex()
