"""The tables of a comparison: `pairs`, `ranking` and `flips`."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.difference import difference, rows_without_partner, weighted_mean
from evaluand.comparison.measures import definition
from evaluand.comparison.pairing import PairedRows, pair_rows
from evaluand.comparison.significance import assign_letters, benjamini_hochberg, holm
from evaluand.comparison.verdict import is_significant
from evaluand.core import identity
from evaluand.core.errors import NotFound
from evaluand.core.key_columns import INDEX
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Metric
from evaluand.run.excerpts import examples_at
from evaluand.run.runner import Run
from evaluand.store.tables import FLIPS, PAIRS, RANKING

SHOWN_IDS: Final = 5


TABLES: Final = {"pairs": PAIRS, "ranking": RANKING, "flips": FLIPS}


def compute_tables(
    evaluations: Sequence[Evaluation], measures: Sequence[Measure], confidence: float, flips: int
) -> dict[str, list[dict[str, Any]]]:
    """The rows of all tables: every two evaluations by every measure and target."""
    pairs: list[dict[str, Any]] = []
    flipped: list[dict[str, Any]] = []
    ranked: list[dict[str, Any]] = []
    for measure in measures:
        found = pair_rows(evaluations, measure.scorer, measure.metric)
        for key in sorted(found.keys, key=lambda key: key[0] or "") or [(None,)]:
            chosen = found.take(found.group == found.keys.index(key)) if found.keys else found
            head = _describe_measure(measure.scorer, found.metric, key[0])
            for a, b in itertools.combinations(range(len(evaluations)), 2):
                flipped += [{"pair": len(pairs)} | flip for flip in _choose_flips(chosen, a, b, measure.metric, flips)]
                numbers = _finite_or_none(dataclasses.asdict(difference(chosen, a, b, measure.metric, confidence)))
                ids_ = {
                    "only_a": _first_ids(evaluations[a], chosen, a, b),
                    "only_b": _first_ids(evaluations[b], chosen, b, a),
                }
                pairs.append(head | {"a": a, "b": b} | numbers | ids_)
            ranked += _rank(head, chosen, measure.metric) if len(evaluations) > 2 else []
    p = np.array([math.nan if pair["p"] is None else pair["p"] for pair in pairs])
    for pair, by_holm, by_bh in zip(pairs, holm(p).tolist(), benjamini_hochberg(p).tolist(), strict=True):
        pair |= _finite_or_none({"p_holm": by_holm, "p_benjamini_hochberg": by_bh})
    return {"pairs": pairs, "ranking": _add_letters(ranked, pairs, confidence), "flips": flipped}


def _describe_measure(scorer: str, metric: Metric, target: str | None) -> dict[str, Any]:
    return {
        "scorer": scorer,
        "metric": metric.kind,
        "signature": definition(metric),
        "direction": metric.direction,
        "share": metric.row_range == (0.0, 1.0),
        "target": target,
    }


def _finite_or_none(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {n: None if isinstance(v, float) and not math.isfinite(v) else v for n, v in numbers.items()}


def _first_ids(evaluation: Evaluation, found: PairedRows, a: int, b: int) -> list[str]:
    """The ids of the first examples that only side `a` has."""
    indices = np.unique(found.index[a, rows_without_partner(found, a, b)])[:SHOWN_IDS].tolist()
    try:
        examples = examples_at(read_run(evaluation), indices)
    except NotFound:
        examples = {}
    return [str(examples[i]["id"]) if i in examples else f"{INDEX} {i}" for i in indices]


def _choose_flips(found: PairedRows, a: int, b: int, metric: Metric, at_most: int) -> Iterator[dict[str, Any]]:
    """The first rows lost and won, or where values are not 0 and 1 those that changed most."""
    used = found.take(found.known[a] & found.known[b])
    change = used.value[b] - used.value[a]
    gain = -change if metric.direction == "lower" else change
    values = used.value[[a, b]]
    by_size = np.zeros(len(gain)) if ((values == 0) | (values == 1)).all() else -np.abs(gain)
    order = np.lexsort((used.replication, used.index[a], by_size))
    for flip, sign in (("lost", -1), ("won", 1)):
        for row in order[np.sign(gain[order]) == sign][:at_most].tolist():
            yield {
                "flip": flip,
                "index_a": int(used.index[a, row]),
                "index_b": int(used.index[b, row]),
                "replication": int(used.replication[row]),
                "value_a": float(used.value[a, row]),
                "value_b": float(used.value[b, row]),
            }


def _rank(head: Mapping[str, Any], found: PairedRows, metric: Metric) -> list[dict[str, Any]]:
    """The evaluations by their means over the rows that all have, best first."""
    common = found.take(np.all(found.known, axis=0))
    values = [weighted_mean(common, common.value[side], metric) for side in range(len(common.status))]
    worst_first = metric.direction == "lower"
    order = sorted(range(len(values)), key=lambda side: values[side] if worst_first else -values[side])
    key = {name: head[name] for name in ("scorer", "signature", "target")}
    n = len(common.group)
    return [key | _finite_or_none({"evaluation": side, "value": values[side]}) | {"n": n} for side in order]


def _add_letters(
    ranked: list[dict[str, Any]], pairs: Sequence[dict[str, Any]], confidence: float
) -> list[dict[str, Any]]:
    """The rows of the ranking with letters: evaluations share one if they cannot be distinguished."""
    keys = [tuple(row[name] for name in ("scorer", "signature", "target")) for row in ranked]
    for key in dict.fromkeys(keys):
        places = [row for row, own in zip(ranked, keys, strict=True) if own == key]
        differing = [
            frozenset((pair["a"], pair["b"]))
            for pair in pairs
            if (pair["scorer"], pair["signature"], pair["target"]) == key and is_significant(pair, confidence)
        ]
        found = assign_letters([row["evaluation"] for row in places], differing)
        for row in places:
            row["letters"] = found[row["evaluation"]]
    return ranked


def tables_digest(tables: Iterable[list[dict[str, Any]]]) -> str:
    """The digest of the rows of some tables: 32 hexadecimal digits."""
    state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
    for table in tables:
        state.update(identity.encode(table))
    return state.hexdigest()


def read_run(evaluation: Evaluation) -> Run:
    """The run that was evaluated.

    Raises:
        NotFound: it is not in the store.
    """
    return Run(evaluation.store, evaluation.manifest["provenance"]["run"])
