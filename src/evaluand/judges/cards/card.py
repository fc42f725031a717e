"""The card of a judge: its measures against people's labels, as a stored artifact.

A card is valid for one digest of the judge (rubric, model, parameters, variables), of the labels and of the judgements
on them. So a changed rubric has no card until it is measured again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import SpecError, plural
from evaluand.core.files.json import none_if_nan
from evaluand.core.provenance import provenance
from evaluand.core.text.html_table import escape_text, html_notes, html_table
from evaluand.engine.keyed_work import Artifact, Receipt
from evaluand.judges.cards.labelled_set import JudgeIdentity, LabelledSet
from evaluand.judges.cards.measures import Measure, measure_grades
from evaluand.judges.cards.misses import DISAGREE, calibration_rows, confusion_rows, miss_rows
from evaluand.judges.cards.pair_measures import measure_pairs
from evaluand.judges.cards.scales import Readings, read_items
from evaluand.judges.cards.wording import measure_cells, measure_name, measure_text
from evaluand.judges.kind import CARDS
from evaluand.metrics.base.metric import check_confidence
from evaluand.metrics.judging.estimate import Estimate
from evaluand.models.usage_total import UsageTotal
from evaluand.store.sealing import seal_tables, tables_digest
from evaluand.store.store import MemoryStore, Store, check_name, give_name
from evaluand.store.tables import CALIBRATION, CONFUSION, MEASURES, MISSES

METHOD: Final = 2
"""Raised whenever the same labels and judgements give other numbers."""

TABLES: Final[Mapping[str, pa.Schema]] = {
    "measures": MEASURES,
    "confusion": CONFUSION,
    "calibration": CALIBRATION,
    "misses": MISSES,
}


class JudgeCard(Artifact):
    """The card of a judge in a store."""

    kind = CARDS

    def __repr__(self) -> str:
        return f"JudgeCard({self.id[:12]}, {self.judge.name}: {self.headline})"

    def __str__(self) -> str:
        """A line for each measure."""
        return "\n".join([f"{self.judge.name}, {self.basis}", *map(measure_text, self.measures)])

    def _repr_html_(self) -> str:
        """The measures, as the table of a notebook."""
        rows = [[*measure_name(row), *measure_cells(row), row["note"]] for row in self.measures]
        heads = ("measure", "of", "value", "interval", "")
        return f"<p>{escape_text(self.judge.name)}</p>" + html_table(heads, rows) + html_notes([self.basis])

    @property
    def judge(self) -> JudgeIdentity:
        """Which judge was measured."""
        spec, parts = self.manifest["spec"], self.manifest["provenance"].get("judge") or {}
        judge = spec["judge"]
        return JudgeIdentity(judge["name"], judge["spec"], parts, spec["options"].get("judge_model"))

    @property
    def judge_digest(self) -> str:
        """The digest of all that may change a verdict, such as rubric, model and parameters."""
        return str(self.manifest["spec"]["judge"]["digest"])

    @property
    def measures(self) -> list[dict[str, Any]]:
        """The columns of `store.tables.MEASURES`."""
        return self.read_rows("measures")

    @property
    def misses(self) -> list[dict[str, Any]]:
        """The answers on which judge and people differ most: the columns of `store.tables.MISSES`."""
        return self.read_rows("misses")

    @property
    def basis(self) -> str:
        """How many answers or pairs it was measured on."""
        spec = self.manifest["spec"]
        counted = plural(spec["items"], "pair" if spec["options"]["pairs"] else "answer")
        before = self.manifest["provenance"]["origin"].get("reported_before", 0)
        again = f", and which reported {plural(before, 'time')} before" if before else ""
        question = spec.get("question")
        named = f" ({question})" if question not in (None, spec["judge"]["name"], _USUAL_QUESTION) else ""
        return f"{counted} labelled by people{named}" + (f", none of which chose it{again}" if spec.get("part") else "")

    @property
    def headline(self) -> str:
        """The agreement with people in a few words, and the number of answers behind it."""
        chosen = {(row["measure"], row["part"]): row for row in self.measures}
        for name in _HEADLINE:
            row = chosen.get(name)
            if row is not None and row["value"] is not None:
                return (
                    f"{' '.join(filter(None, measure_name(row)))} {' '.join(measure_cells(row)).strip()}, {self.basis}"
                )
        return self.basis

    @property
    def has_agreement(self) -> bool:
        """Whether it measures how far judge and people agree; false if the judge abstained on all labelled answers."""
        return any(row["measure"] in _AGREEMENT and row["value"] is not None for row in self.measures)

    @property
    def clusters(self) -> int:
        """How many examples, or groups of examples, have both a label of people and one of the judge."""
        return int(self.manifest["spec"]["clusters"])

    @property
    def weakness(self) -> str | None:
        """Why the card does not justify trust in the judge; None if it shows agreement on enough examples."""
        if self.clusters < LEAST_CLUSTERS:
            return f"it was measured on {plural(self.clusters, 'example')}, and {LEAST_CLUSTERS} are needed"
        is_pairs = self.manifest["spec"]["options"]["pairs"]
        chance, names = (0.5, _OF_ORDERS) if is_pairs else (0.0, _BEYOND_CHANCE)
        found = [each for name in names if (each := self.find(*name)) is not None and each.value == each.value]
        bound = next((each.low for each in found if each.low == each.low), None)
        if bound is None:
            why = next((row["reason"] for row in self.measures if row["reason"] and row["measure"] in _AGREEMENT), None)
            return "it is not shown to agree with people beyond chance" + (f": {why}" if why else "")
        return None if bound > chance else "it is not shown to agree with people beyond chance"

    def find(self, measure: str, part: str = "") -> Estimate | None:
        """A measure as a number with its interval; None if the card does not have it.

        Args:
            part: such as `first order`; empty for all.
        """
        row = next((row for row in self.measures if (row["measure"], row["part"]) == (measure, part)), None)
        if row is None:
            return None
        value, low, high = (math.nan if row[name] is None else row[name] for name in ("value", "low", "high"))
        return Estimate(value, low, high, row["n"], row["effective"], row["reason"])

    def table(self, name: str = "measures") -> pa.Table:
        """One of the tables `measures`, `confusion`, `calibration` and `misses`.

        Raises:
            SpecError: there is no such table.
        """
        if name not in TABLES:
            raise SpecError(f"a card has no table {name!r}: {', '.join(TABLES)}")
        return pa.Table.from_batches(self.store.read(CARDS, self.id, name), TABLES[name])

    def read_rows(self, table: str) -> list[dict[str, Any]]:
        """The stored rows of a table."""
        rows: list[dict[str, Any]] = self.table(table).to_pylist()
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The complete card as JSON-like data."""
        spec, origin = self.manifest["spec"], self.manifest["provenance"]
        facts = {name: spec[name] for name in ("labels", "question", "judgements", "items", "confidence", "options")}
        costs = {name: origin.get(name) for name in ("usage", "seconds", "source")}
        head = {"id": self.id, "digest": self.digest, "name": self.name, "judge": spec["judge"], "basis": self.basis}
        tables = {table: self.read_rows(table) for table in TABLES}
        for miss in tables["misses"]:
            if miss["people"] == "nan":  # as cards were written before these rows said what each person gave
                miss["people"] = DISAGREE
            miss["texts"] = None if miss["texts"] is None else identity.decode(miss["texts"])
        return head | facts | {"part": spec.get("part")} | costs | tables


LEAST_CLUSTERS: Final = 20
"""The fewest examples on which a judge counts as measured: one that judges all of 20 as people do may still err on one
in six of others (the lower end of the 95 % score interval is 0.84)."""

_USUAL_QUESTION: Final = "human"
"""The default name of imported labels, which says nothing about the question."""

_AGREEMENT: Final = ("agreement", "krippendorff_alpha")
_BEYOND_CHANCE: Final = (("krippendorff_alpha", ""), ("cohen_kappa", ""), ("weighted_kappa", "quadratic"))
_OF_ORDERS: Final = (("agreement", "both orders"), ("agreement", "first order"), ("agreement", "second order"))
_HEADLINE: Final = (
    ("agreement", ""),
    ("agreement", "both orders"),
    ("agreement", "first order"),
    ("krippendorff_alpha", ""),
    ("abstained", ""),
)


def make_card(
    labelled: LabelledSet,
    store: Store | None = None,
    *,
    positive: str | None = None,
    order: Sequence[str] = (),
    threshold: float | None = None,
    judge_model: str | None = None,
    confidence: float = 0.95,
    part: Mapping[str, Any] | None = None,
    name: str | None = None,
    origin: dict[str, Any] | None = None,
) -> JudgeCard:
    """The card of a judge, measured on a set labelled by people; an equal stored card is returned.

    Args:
        labelled: the answers, or pairs, with labels and judgements.
        store: where the card is stored; default: in memory.
        positive: the word that means right, if labels are words; any other word is wrong.
        order: all labels from the lowest to the highest.
        threshold: the lowest number with which the judge accepts an answer, if people say right or wrong.
        judge_model: the model that judges, to find answers that it wrote itself; by default that of the judge.
        confidence: of the intervals.
        part: the part of a larger set that this is, and the choice that was made by the other parts.
        name: a name for the card.
        origin: where the request came from, for provenance.

    Raises:
        SpecError: nothing is labelled, or an option does not fit the labels.
        DataError: the labels of people and judge have no scale in common.

    Example:
        >>> from evaluand.matches.labelled_sets import read_labelled_file
        >>> rows = [{"label": i % 2, "judgement": int(i % 5 < 2)} for i in range(40)]
        >>> card = make_card(read_labelled_file(rows, "mine"))
        >>> card.headline
        'agreement 0.50 [0.35, 0.65], 40 answers labelled by people'
    """
    store = MemoryStore() if store is None else store
    check_confidence("judge card", confidence)
    if name is not None:
        check_name(name)
    if not labelled.items:
        raise SpecError("no answer is both labelled by people and judged, so there is nothing to measure")
    judge, model = labelled.judge, judge_model or labelled.judge.model
    options = {"positive": positive, "order": list(order), "threshold": threshold, "judge_model": model}
    readings = read_items(
        labelled.items,
        is_pairs=labelled.is_pairs,
        positive=positive,
        order=order,
        threshold=threshold,
        judge_range=labelled.judge_range,
        verdicts=labelled.verdicts,
    )
    spec = {
        "judge": {"name": judge.name, "digest": judge.digest, "spec": dict(judge.spec)},
        "labels": labelled.digest,
        "judgements": labelled.judgements_digest,
        "details": labelled.details_digest,
        "question": labelled.question,
        "items": len(labelled.items),
        "clusters": _count_clusters(readings),
        "confidence": float(confidence),
        "options": options | {"pairs": labelled.is_pairs, "method": METHOD},
        "part": None if part is None else dict(part),
    }
    id = identity.artifact_id(CARDS, spec)
    is_stored = store.is_sealed(CARDS, id)
    if not is_stored:
        tables = _compute(labelled, readings, options, confidence)
        batches = {table: pa.RecordBatch.from_pylist(tables[table], schema) for table, schema in TABLES.items()}
        facts = provenance(origin) | _costs(labelled) | {"judge": dict(judge.parts), "source": labelled.source}
        facts["made_from"] = [{"kind": kind, "id": each} for kind, each in labelled.made_from]
        seal_tables(store, CARDS, id, spec, batches, name, facts, work=[judge.digest])
    give_name(store, name, CARDS, id, origin or {})
    return JudgeCard(store, id, Receipt(1, kept=1, why="made before") if is_stored else Receipt(1, called=1))


def _count_clusters(readings: Readings) -> int:
    """How many examples have both a label of people and one of the judge."""
    truth = readings.mean if readings.kind == "numbers" else readings.majority
    judged = np.concatenate([readings.judge, readings.swapped], axis=1)
    both = ~np.isnan(truth) & ~np.isnan(judged).all(axis=1)
    return len(np.unique(readings.example[both]))


def _compute(
    labelled: LabelledSet, readings: Readings, options: Mapping[str, Any], confidence: float
) -> dict[str, list[dict[str, Any]]]:
    items, model = labelled.items, options["judge_model"]
    measures = (
        measure_pairs(items, readings, judge_model=model, confidence=confidence)
        if labelled.is_pairs
        else measure_grades(items, readings, threshold=options["threshold"], judge_model=model, confidence=confidence)
    )
    return {
        "measures": [_measure_row(each) for each in measures],
        "confusion": confusion_rows(readings, options["threshold"]),
        "calibration": calibration_rows(readings, confidence),
        "misses": miss_rows(items, readings, options["threshold"]),
    }


def _measure_row(measure: Measure) -> dict[str, Any]:
    found = measure.estimate
    numbers = {name: none_if_nan(getattr(found, name)) for name in ("value", "low", "high")}
    counts = {"n": found.n, "effective": found.effective, "reason": found.reason, "note": measure.note}
    return {"measure": measure.name, "part": measure.part} | numbers | counts


def _costs(labelled: LabelledSet) -> dict[str, Any]:
    """The total usage of the judgements, and how long they took."""
    total = UsageTotal()
    for usage in labelled.usage:
        total.add(usage)
    seconds = np.array(labelled.seconds, np.float64)
    took = None
    if len(seconds):
        took = {"n": len(seconds), "median": float(np.median(seconds)), "high": float(np.quantile(seconds, 0.95))}
    return {"usage": total.to_dict(), "seconds": took}


def stored_digest(store: Store, id: str) -> tuple[str, dict[str, int]]:
    """The digest and the row counts of a stored card, computed from the rows as they are now."""
    card = JudgeCard(store, id)
    tables = {table: card.read_rows(table) for table in TABLES}
    return tables_digest(tables.values()), {table: len(rows) for table, rows in tables.items()}


def stored_cards(store: Store) -> Iterator[JudgeCard]:
    """All cards of a store, the newest first."""
    manifests = [store.manifest(CARDS, id) for id in store.ids(CARDS) if store.is_sealed(CARDS, id)]
    for manifest in sorted(manifests, key=lambda each: str(each["created"]), reverse=True):
        yield JudgeCard(store, manifest["id"])
