"""Facts: plain, JSON-like data; rows of tables, reasons for missing results, and names of artifacts."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from evaluand.core.labels import experiment_of
from evaluand.models.prices import Price, default_prices
from evaluand.models.usage_total import UsageTotal
from evaluand.store.statuses import SKIPPED

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.run.runner import Run
    from evaluand.store.store import Ref


Facts = dict[str, Any]


def read_row(batch: pa.RecordBatch, i: int) -> dict[str, Any]:
    """One row of a batch, with its JSON columns parsed."""
    from evaluand.store.tables import is_json  # on use: `evaluand list` does without Arrow

    row: dict[str, Any] = batch.slice(i, 1).to_pylist()[0]
    read = (field.name for field in batch.schema if is_json(field) and row[field.name] is not None)
    return row | {name: orjson.loads(row[name]) for name in read}


def plain_row(row: dict[str, Any]) -> Facts:
    """A row of a table as JSON-like data: durations in seconds, times in UTC, digests as hexadecimal digits."""
    return {name: _plain_cell(value) for name, value in row.items() if name != "fold" or value is not None}


def _plain_cell(value: Any) -> Any:
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value


def usage_facts(manifest: Mapping[str, Any], price: Price | None = None) -> Facts:
    """What the rows of an artifact have used, `usage`, and what making it has cost, `spent`, as far as there is any.

    Args:
        price: of a run whose cost was unknown; by default that of the only model that it asked, in a table of prices.
    """
    facts = {name: manifest[name] for name in ("usage", "spent") if name in manifest}
    models = manifest.get("provenance", {}).get("models", ())
    if "rows" in facts.get("usage", ()) and len(models) == 1:
        price = price or default_prices().find(**models[0])
        facts["usage"] = UsageTotal.read(facts["usage"]).priced(price).to_dict()
    return facts


def choose_rows(
    batches: Iterable[pa.RecordBatch], counts: Mapping[str, int], good: str, n: int, failed: bool
) -> list[dict[str, Any]]:
    """The first rows of a table: those without a result, then, unless `failed`, the others.

    Skipped rows are never chosen.
    """
    bad_left = min(n, sum(count for status, count in counts.items() if status not in (good, SKIPPED)))
    good_left = 0 if failed else min(n - bad_left, counts.get(good, 0))
    bad_rows, good_rows = [], []
    for batch in batches:
        if not bad_left and not good_left:
            break
        for i, status in enumerate(batch.column("status").to_pylist()):
            if status not in (good, SKIPPED) and bad_left:
                bad_rows.append(read_row(batch, i))
                bad_left -= 1
            elif status == good and good_left:
                good_rows.append(read_row(batch, i))
                good_left -= 1
    return bad_rows + good_rows


def matching_keys(artifact: Run | Evaluation, where: str) -> set[tuple[Any, ...]]:
    """The keys of the rows that match a condition, see `RowFilter`; those of scores begin with the scorer."""
    from evaluand.report.export import flat  # on use: `evaluand list` does without Arrow

    names = KEY if "replications" in artifact.manifest["spec"] else ("scorer", *KEY, "_response_index_", "target")
    found: set[tuple[Any, ...]] = set()
    for batch in flat(artifact, where=where):
        found.update(zip(*(batch.column(name).to_pylist() for name in names), strict=True))
    return found


def rows_with(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], keys: Collection[tuple[Any, ...]], *before: str
) -> Iterator[pa.RecordBatch]:
    """The rows whose values in some columns, after `before`, are one of the keys."""
    import pyarrow as pa

    for batch in batches:
        found = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
        yield batch.filter(pa.array([(*before, *key) in keys for key in found], pa.bool_()))


KEY: Final = ("_index_", "replication")


def count_statuses(batches: Iterable[pa.RecordBatch]) -> Counter[str]:
    """How many rows have each status."""
    return Counter(status for batch in batches for status in batch.column("status").to_pylist())


def count_reasons(failures: Iterable[tuple[int, str, str]]) -> list[Facts]:
    """Reasons with their counts and first rows, most frequent first; those that differ only in figures count as one."""
    first: dict[tuple[str, str], tuple[int, str]] = {}
    varying: set[tuple[str, str]] = set()
    counts: Counter[tuple[str, str]] = Counter()
    for index, status, reason in failures:
        key = (status, re.sub(r"\d+", "0", reason))
        if key not in first and len(first) >= _KINDS_OF_REASONS:
            key, reason = (status, ""), "other reasons"
        if first.setdefault(key, (index, reason))[1] != reason:
            varying.add(key)
        counts[key] += 1
    others = "; others differ in their figures"
    return [
        {"status": key[0], "count": count, "reason": first[key][1] + others * (key in varying), "first": first[key][0]}
        for key, count in counts.most_common()
    ]


_KINDS_OF_REASONS = 1000


class Names:
    """The names of artifacts, from the refs of a store.

    Args:
        refs: all of them.
        asked: the name that is shown: of something that has several names, only this or those of its experiment.
    """

    def __init__(self, refs: Iterable[Ref], asked: str = "") -> None:
        self._asked, self._experiment = asked, experiment_of(asked) or asked
        self._names: dict[tuple[str, str], list[str]] = {}
        self._taken: set[tuple[str, str]] = set()
        for ref in refs:
            self._names.setdefault((ref.kind, ref.id), []).append(ref.name)
            self._taken.add((ref.kind, ref.name))

    def find(self, kind: str, id: str, name: str | None) -> list[str]:
        """The names that refer to an artifact; else the name in its manifest, if no other artifact has taken it."""
        own = [] if name is None or (kind, name) in self._taken else [name]
        names = sorted(self._names.get((kind, id), own))
        related = [each for each in names if (experiment_of(each) or each) == self._experiment]
        return [self._asked] if self._asked in names else related or names

    def is_of_another(self, use: tuple[str, str], made_from: tuple[str, str]) -> bool:
        """Whether all names of something are further names of what it was made from: those of other experiments."""
        names, own = self._names.get(made_from, ()), self._names.get(use, ())
        return self._asked in names and bool(own) and {*own} <= {*names} - {self._asked}
