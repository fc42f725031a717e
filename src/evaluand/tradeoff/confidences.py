"""Confidences: how sure one or several models were of the same examples, and what came true.

The operating points of a model are counts of its decisions at thresholds, by group. They come from one pass over the
rows: each falls between two thresholds, and what lies above one is the sum of what falls behind it, so a thousand
thresholds cost as much as ten.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations_with_replacement, product
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from evaluand.core.errors import DataError, Fault, SpecError, kind_of
from evaluand.metrics.base.labels import encode_labels, in_order
from evaluand.tradeoff.arguments import listed, named

Thresholds = Literal["every", "roc"]
"""`every` distinct confidence of the model, besides the threshold that nothing reaches; or only those that are corners
of its ROC curve."""

AT_ONCE: Final = 1 << 24
"""Numbers that are held at once."""

READ: Final = "make them by Confidences.read"
"""What to do where something else is given."""

CELLS: Final = ((False, False), (False, True), (True, False), (True, True))
"""The truth and the decision of each cell of counts."""


class Groups(NamedTuple):
    """To which group each row belongs; -1 where that is not known. With what rows count, and which belong together."""

    code: np.ndarray
    names: tuple[Mapping[str, str], ...]
    weight: np.ndarray | None = None
    cluster: np.ndarray | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Confidences:
    """Models of one system on the same rows.

    Attributes:
        truth: which rows are positive.
        models: of each model how sure it was that each row is positive.
        attributes: what rows are grouped by: codes into names, -1 for none.
        system: what the models belong to.
        weight: how much each row counts; None where all count alike.
        cluster: which rows belong together, for intervals; None where each stands for itself.
    """

    truth: np.ndarray
    models: Mapping[str, np.ndarray]
    attributes: Mapping[str, tuple[np.ndarray, tuple[str, ...]]]
    system: str = "system"
    weight: np.ndarray | None = None
    cluster: np.ndarray | None = None

    @classmethod
    def read(
        cls,
        truth: Any,
        models: Any,
        by: Any = None,
        *,
        label: str | int | bool | None = None,
        system: str = "system",
        weight: Any = None,
        cluster: Any = None,
    ) -> Confidences:
        """From columns: lists, NumPy arrays, pandas series or Arrow arrays.

        Args:
            truth: n labels, two of them.
            models: name → n finite numbers, higher where the model takes the row for positive; or a frame of these.
            by: attribute → n values, or a frame of these; None for rows of no group.
            label: the positive label; `True` of bools and 1 of integers if not given.
            system: what the models belong to.
            weight: n numbers, 0 or more: how much each row counts in all values; rows of weight 0 are left out.
            cluster: n values, equal for rows that belong together (of one person, replications of one example): whole
                clusters tell how sure a value is. None for a row that belongs to no other.

        Raises:
            DataError: columns of different lengths, missing truths, confidences that are no finite numbers, or weights
                that are negative or all 0.
            SpecError: there are not two labels, or it is not known which is positive.

        Example:
            >>> given = Confidences.read([0, 1], {"tree": [0.2, 0.9]}, {"sex": ["f", "m"]})
            >>> given.truth, list(given.models)
            (array([False,  True]), ['tree'])
        """
        given = {} if models is None else named("models", models, "{'tree': [0.2, 0.9]}")
        if not given:
            raise SpecError("no model is given; give the confidences of each by its name")
        groups = {} if by is None else named("by", by, "{'sex': ['f', 'm']}")
        for name in groups:
            if "," in name or name != name.strip() or not name.isprintable() or not name:
                told = "which no objective could ask for; a name is text without commas and blanks at its ends"
                raise SpecError(f"by: an attribute is called {name!r}, {told}")
        called: Any = system
        if not isinstance(called, str):
            raise SpecError(f"system={called!r} must be text, such as 'linear'")
        positive = _positive(_whole(_array("truth", truth)), label)
        faults: list[Fault] = []
        sure = {name: _numbers(f"models[{name!r}]", values, len(positive), faults) for name, values in given.items()}
        attributes = {name: _codes(f"by[{name!r}]", values, len(positive), faults) for name, values in groups.items()}
        weighing = None if weight is None else _weights(weight, len(positive), faults)
        together = None if cluster is None else _clusters(cluster, len(positive), faults)
        if faults:
            raise DataError(faults)
        if not len(positive):
            raise DataError(Fault("truth", "has no rows, so there is nothing to decide"))
        return cls(positive, sure, attributes, system, weighing, together)._that_count()

    def __repr__(self) -> str:
        told = f"{len(self.truth):,} rows, {int(self.truth.sum()):,} of them positive"
        return f"<Confidences {self.system!r}: {told}; models {[*self.models]}, attributes {[*self.attributes]}>"

    @property
    def effective(self) -> float:
        """How many rows, or clusters, of equal weight would tell as much (Kish)."""
        weight = np.ones(len(self.truth)) if self.weight is None else self.weight
        each = weight if self.cluster is None else np.bincount(self.cluster, weight)
        return float(np.square(each.sum()) / np.square(each).sum())

    def sure(self, model: str) -> np.ndarray:
        """How sure a model was that each row is positive.

        Raises:
            SpecError: there is no such model.
        """
        if model not in self.models:
            raise SpecError(f"there are no confidences of the model {model!r}; there are: {', '.join(self.models)}")
        return self.models[model]

    def groups(self, by: Sequence[str]) -> Groups:
        """The groups of some attributes, crossed.

        Raises:
            SpecError: there is no such attribute.
        """
        by = listed("by", by, str, "['sex']")
        for name in by:
            if name not in self.attributes:
                known = ", ".join(self.attributes) or "none"
                raise SpecError(f"there is no attribute {name!r} to group by; there are: {known}")
        if not by:
            return Groups(np.zeros(len(self.truth), np.int64), ({},), self.weight, self.cluster)
        codes = [self.attributes[name][0] for name in by]
        known = np.logical_and.reduce([code >= 0 for code in codes])
        names = [self.attributes[name][1] for name in by]
        packed = reduce(lambda all, part: all * len(part[1]) + part[0], zip(codes, names, strict=True), 0 * codes[0])
        found, code = np.unique(packed[known], return_inverse=True)
        whole = np.full(len(self.truth), -1, np.int64)
        whole[known] = code
        places = np.unravel_index(found, [len(each) for each in names])
        told = zip(*([each[i] for i in place] for each, place in zip(names, places, strict=True)), strict=True)
        return Groups(whole, tuple(dict(zip(by, each, strict=True)) for each in told), self.weight, self.cluster)

    def apart(self, by: Sequence[str]) -> tuple[Mapping[str, str], ...]:
        """The groups that may have thresholds of their own, to one of which every row belongs.

        Raises:
            SpecError: there is no such attribute, or a row belongs to no group.
        """
        groups = self.groups(by)
        self._own(by, groups.names)
        return groups.names

    def counted(
        self,
        model: str,
        by: Sequence[str],
        thresholds: np.ndarray,
        apart: Sequence[Mapping[str, str]] = (),
        *,
        crossed: bool = False,
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
        """The counts of a model's decisions at some points, a stretch of points after the other.

        Args:
            model: whose.
            by: attributes whose groups are counted.
            thresholds: of each point; points × groups where groups have thresholds of their own.
            apart: these groups, as in `apart`.
            crossed: whether the products of counts are asked for.

        Yields:
            Which points, `counts_at`, and `crossed_at` if it is asked for.

        Raises:
            SpecError: the counts of a single point are too many, a row has no threshold, or products are asked for and
                a cluster has rows of several thresholds.
        """
        groups, sure = self.groups(by), self.sure(model)
        products = crossed and (self.weight is not None or self.cluster is not None)
        each = len(groups.names) * len(CELLS) ** (2 if products else 1)
        told = f"counts of {len(groups.names):,} groups"
        steps = list(in_blocks(len(thresholds), each, told))
        if not apart:
            for step in steps:
                rows = sure, self.truth, groups, thresholds[step]
                yield step, counts_at(*rows), crossed_at(*rows) if products else None
            return
        own, parts, places = self._own([*apart[0]], apart), [], []
        if products:
            self._check_clusters_within(own)
        for number in range(len(apart)):
            tried, place = np.unique(thresholds[:, number], return_inverse=True)
            next(in_blocks(1, len(tried) * each, f"{told} at {len(tried):,} thresholds"))
            mine = groups._replace(code=np.where(own == number, groups.code, -1))
            rows = sure, self.truth, mine, tried
            parts.append((counts_at(*rows), crossed_at(*rows) if products else None))
            places.append(place.ravel())
        counts, squares = zip(*parts, strict=True)
        for step in steps:
            yield step, _summed(counts, places, step), _summed(squares, places, step) if products else None

    def _check_clusters_within(self, own: np.ndarray) -> None:
        """Stops at clusters whose rows are decided by several thresholds, whose products no group alone tells."""
        if self.cluster is None:
            return
        pairs = np.unique(np.stack([self.cluster, own]), axis=1)
        if pairs.shape[1] > len(np.unique(self.cluster)):
            told = "some clusters have rows of several groups with thresholds of their own"
            raise SpecError(f"{told}, so points have no intervals; have one threshold for all groups")

    def _own(self, by: Sequence[str], apart: Sequence[Mapping[str, str]]) -> np.ndarray:
        """Of each row the one of some groups whose threshold is its own."""
        groups, places = self.groups(by), {tuple(name.values()): place for place, name in enumerate(apart)}
        lacking = int((groups.code < 0).sum())
        if lacking:
            told = f"{lacking:,} of {len(self.truth):,} rows have no {' or no '.join(by)}, so no threshold is theirs"
            raise SpecError(f"{told}; leave these rows out, or put them into a group")
        for name in groups.names:
            if tuple(name.values()) not in places:
                raise SpecError(f"there are rows of {group_text(name)}, and no threshold is theirs")
        place = np.array([places[tuple(name.values())] for name in groups.names], np.int64)
        return np.asarray(place[groups.code])

    def thresholds(
        self, model: str, wanted: Thresholds | int | Sequence[float], rows: np.ndarray | None = None
    ) -> np.ndarray:
        """The thresholds that are tried of a model.

        Args:
            model: whose.
            wanted: see `Thresholds`; a number of thresholds that lie evenly from 0 to 1; or these themselves.
            rows: which of the rows they are to part; all if not given.

        Raises:
            SpecError: there are no such thresholds.
        """
        sure = self.sure(model)
        if isinstance(wanted, str):
            if wanted not in ("every", "roc"):
                raise SpecError(f"thresholds={wanted!r} must be {_THRESHOLDS}")
            some = slice(None) if rows is None else rows
            return _distinct(sure[some]) if wanted == "every" else _corners(sure[some], self.truth[some])
        if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool):
            if not 2 <= wanted <= AT_ONCE:
                raise SpecError(f"thresholds={wanted} must be 2 or more, from 0 to 1, and {AT_ONCE:,} at most")
            return np.linspace(0.0, 1.0, int(wanted))
        try:
            given = np.asarray(wanted)
        except ValueError:  # lists of different lengths
            given = np.empty(0, np.object_)
        if given.ndim != 1 or not len(given):
            raise SpecError(f"thresholds must be {_THRESHOLDS} that is not empty")
        if given.dtype.kind not in "iuf" or np.isnan(given).any():
            raise SpecError(f"thresholds must be {_THRESHOLDS}; some of these are no numbers")
        return given.astype(np.float64)

    def _that_count(self) -> Confidences:
        """Without rows of weight 0, weights that are all alike, and clusters of one row each."""
        there = np.ones(len(self.truth), bool) if self.weight is None else self.weight > 0
        weight, cluster = (None if each is None else each[there] for each in (self.weight, self.cluster))
        if weight is not None and not _SMALLEST < weight.max() < 1 / _SMALLEST:
            weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))  # so that sums and squares are numbers
        if weight is not None and np.ptp(weight) == 0:
            weight = None
        if cluster is not None:
            cluster = np.unique(cluster, return_inverse=True)[1]
            cluster = None if cluster.max() == len(cluster) - 1 else cluster
        return replace(
            self,
            truth=self.truth[there],
            models={name: sure[there] for name, sure in self.models.items()},
            attributes={name: (code[there], names) for name, (code, names) in self.attributes.items()},
            weight=weight,
            cluster=cluster,
        )


def counts_at(confidence: np.ndarray, truth: np.ndarray, groups: Groups, thresholds: np.ndarray) -> np.ndarray:
    """How often each truth met each decision, thresholds × groups × `CELLS`; what reaches a threshold is positive.

    Rows that have weights count by these.

    Example:
        >>> groups = Groups(np.array([0, 0, 1]), ({"g": "a"}, {"g": "b"}))
        >>> counts_at(np.array([0.2, 0.5, 0.9]), np.array([False, True, True]), groups, np.array([0.5]))
        array([[[1, 0, 0, 1],
                [0, 0, 0, 1]]])
    """
    if thresholds.ndim != 1:
        raise SpecError("groups have thresholds of their own, and these are counts at one threshold for all")
    order = np.argsort(thresholds)
    table = binned(confidence, truth, groups, thresholds[order])
    counts = np.empty((len(thresholds), *table.shape[1:-1], 4), table.dtype)
    counts[order] = cells_of(table)
    return counts


def crossed_at(confidence: np.ndarray, truth: np.ndarray, groups: Groups, thresholds: np.ndarray) -> np.ndarray | None:
    """The products of the counts of each two cells, of each cluster and summed over them; None for rows that stand
    for themselves and count alike, whose counts tell all.

    They are what the variance of any function of counts by cluster is made of. A row that comes to reach a threshold
    adds to the products what its cluster has so far, so one pass over the rows does for all thresholds.

    Returns:
        Thresholds × groups × `CELLS` × `CELLS`.
    """
    if groups.weight is None and groups.cluster is None:
        return None
    there = groups.code >= 0
    group, n = groups.code[there], int(there.sum())
    weight = np.ones(n) if groups.weight is None else groups.weight[there]
    cluster = np.arange(n) if groups.cluster is None else groups.cluster[there]
    ordered = np.argsort(thresholds)
    reached = np.searchsorted(thresholds[ordered], confidence[there], side="right")
    order = np.lexsort((-reached, cluster, group))
    group, cluster, reached, weight = group[order], cluster[order], reached[order], weight[order]
    positive = truth[there][order]
    unit = np.cumsum((np.diff(group, prepend=-1) != 0) | (np.diff(cluster, prepend=-1) != 0)) - 1
    mine = np.stack([weight * ~positive, weight * positive])  # of negative and of positive rows
    whole = np.stack([np.bincount(unit, each) for each in mine])
    start = np.cumsum(whole, axis=1) - whole
    before = np.cumsum(mine, axis=1) - mine - start[:, unit]
    place = reached * len(groups.names) + group
    shape = len(thresholds) + 1, len(groups.names)

    def reaching(added: np.ndarray) -> np.ndarray:
        table = np.bincount(place, added, math.prod(shape)).reshape(shape)
        return np.flip(np.cumsum(np.flip(table, 0), 0), 0)[1:]

    fp, tp = mine
    all_fp, all_tp = whole[:, unit]
    had_fp, had_tp = before
    fp_fp, tp_tp = reaching(fp * (2 * had_fp + fp)), reaching(tp * (2 * had_tp + tp))
    fp_tp = reaching(fp * had_tp + tp * had_fp)
    fp_p, fp_n, tp_p, tp_n = (reaching(a * b) for a, b in product((fp, tp), (all_tp, all_fp)))
    of = group[np.flatnonzero(np.diff(unit, prepend=-1))]
    nn, pn, pp = (np.bincount(of, a * b, shape[1]) for a, b in combinations_with_replacement(whole, 2))
    upper = {
        (0, 0): nn - 2 * fp_n + fp_fp,
        (0, 1): fp_n - fp_fp,
        (0, 2): pn - tp_n - fp_p + fp_tp,
        (0, 3): tp_n - fp_tp,
        (1, 1): fp_fp,
        (1, 2): fp_p - fp_tp,
        (1, 3): fp_tp,
        (2, 2): pp - 2 * tp_p + tp_tp,
        (2, 3): tp_p - tp_tp,
        (3, 3): tp_tp,
    }
    found = np.empty((*fp_fp.shape, len(CELLS), len(CELLS)))
    for (i, j), each in upper.items():
        found[ordered, :, i, j] = found[ordered, :, j, i] = each
    return found


def _summed(tables: Sequence[Any], places: Sequence[np.ndarray], step: slice) -> np.ndarray:
    """Of each point the sum of what the groups have at their thresholds."""
    return reduce(np.add, (table[place[step]] for table, place in zip(tables, places, strict=True)))


def group_text(name: Mapping[str, str]) -> str:
    """What a group is called.

    Example:
        >>> group_text({"sex": "female", "race": "x"})
        'sex=female, race=x'
    """
    return ", ".join(f"{attribute}={value}" for attribute, value in name.items())


def combined(tried: Sequence[np.ndarray]) -> np.ndarray:
    """Every combination of the thresholds of some groups: points × groups.

    Example:
        >>> combined([np.array([0.2, 0.8]), np.array([0.5])]).tolist()
        [[0.2, 0.5], [0.8, 0.5]]
    """
    return np.stack(np.meshgrid(*tried, indexing="ij"), axis=-1).reshape(-1, len(tried))


def binned(confidence: np.ndarray, truth: np.ndarray, groups: Groups, thresholds: np.ndarray) -> np.ndarray:
    """How many rows reach how many of the thresholds, which are in order: (thresholds + 1) × groups × truth."""
    there = groups.code >= 0
    reached = np.searchsorted(thresholds, confidence[there], side="right")
    place = (reached * len(groups.names) + groups.code[there]) * 2 + truth[there]
    shape = (len(thresholds) + 1, len(groups.names), 2)
    weight = None if groups.weight is None else groups.weight[there]
    return np.bincount(place, weight, int(np.prod(shape))).reshape(shape)


def cells_of(table: np.ndarray) -> np.ndarray:
    """The counts at each threshold, of `binned` with any axes before: … × thresholds × groups × `CELLS`."""
    above = np.flip(np.cumsum(np.flip(table, -3), -3), -3)
    positive = above[..., 1:, :, :]
    whole = table.dtype.kind in "iu"  # differences of sums of weights would leave traces where there is nothing
    below = above[..., :1, :, :] - positive if whole else np.cumsum(table, -3)[..., :-1, :, :]
    return np.stack([below[..., 0], positive[..., 0], below[..., 1], positive[..., 1]], axis=-1)


def in_blocks(n: int, each: int, told: str) -> Iterator[slice]:
    """Stretches of n thresholds, of which so many numbers are held for each, few enough at a time to fit into memory.

    Raises:
        SpecError: those of a single one are too many; tells what they are.
    """
    if each > AT_ONCE:
        raise SpecError(f"{told} need {each:,} numbers at once, and {AT_ONCE:,} are the most; group by fewer values")
    step = max(1, AT_ONCE // max(each, 1))
    yield from (slice(start, min(start + step, n)) for start in range(0, n, step))


def label_of(labels: Sequence[Any], label: str | int | bool | None) -> Any:
    """The positive one of the labels there are: the one that is given, else `True` of bools and 1 of integers.

    Raises:
        SpecError: no label is given and they do not tell, or no truth has the one that is.
    """
    if label is None:
        label = next((one for one in (True, 1) if all(isinstance(x, type(one)) and x in (0, 1) for x in labels)), None)
        if label is None:
            named = ", ".join(map(repr, labels[:_SHOWN]))
            raise SpecError(f"which label is positive? The truth has {named}; give one of them as label")
    elif label not in labels and len(labels) > 1:
        raise SpecError(f"no truth is {label!r}; there are {', '.join(map(repr, labels[:_SHOWN]))}")
    return label


def _positive(truth: pa.Array, label: Any) -> np.ndarray:
    if truth.null_count:
        row = int(np.flatnonzero(truth.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(Fault(f"truth[{row}]", "is missing; leave out the rows without a truth"))
    [codes], vocabulary = _coded("truth", truth)
    labels = vocabulary.tolist()
    label = label.item() if isinstance(label, np.generic) else label
    if label is not None and not isinstance(label, str | int):
        raise SpecError(f"label={label!r} must be one of the labels of the truth: {', '.join(map(repr, labels[:5]))}")
    label = label_of([labels[i] for i in in_order(vocabulary)], label)
    others = [one for one in labels if one != label]
    if len(others) > 1:
        raise SpecError(
            f"a threshold parts two classes; besides {label!r} the truth has {others[0]!r} and {others[1]!r}"
        )
    return np.asarray(codes == (labels.index(label) if label in labels else -1))


def _numbers(name: str, values: Any, n: int, faults: list[Fault]) -> np.ndarray:
    try:
        found = _array(name, values).cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, DataError):
        faults.append(
            Fault(name, f"are no numbers; give a {'weight' if name == 'weight' else 'confidence'} for each row")
        )
        return np.zeros(n)
    if len(found) != n:
        faults.append(
            Fault(name, f"has {len(found)} {'weights' if name == 'weight' else 'confidences'} and there are {n} truths")
        )
    elif not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0])
        faults.append(Fault(f"{name}[{row}]", "is no finite number; leave out the row, or give one"))
    return np.asarray(found)


def _weights(values: Any, n: int, faults: list[Fault]) -> np.ndarray:
    found = _numbers("weight", values, n, faults)
    if (found < 0).any():
        faults.append(Fault(f"weight[{int(np.argmax(found < 0))}]", "is negative; a row counts 0 or more"))
    elif n and not found.any() and not faults:
        faults.append(Fault("weight", "is 0 for all rows, so there is nothing to decide"))
    return found


def _clusters(values: Any, n: int, faults: list[Fault]) -> np.ndarray:
    [codes], _ = encode_labels([_array("cluster", values)])
    if len(codes) != n:
        faults.append(Fault("cluster", f"has {len(codes)} values and there are {n} truths"))
    return np.where(codes < 0, len(codes) + np.arange(len(codes)), codes)


def _codes(name: str, values: Any, n: int, faults: list[Fault]) -> tuple[np.ndarray, tuple[str, ...]]:
    try:
        [codes], vocabulary = _coded(name, _whole(_array(name, values)))
    except DataError as error:
        faults.extend(error.faults)
        return np.empty(0, np.int64), ()
    if len(codes) != n:
        faults.append(Fault(name, f"has {len(codes)} values and there are {n} truths"))
    order = in_order(vocabulary)
    place = np.empty(len(order) + 1, np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    named = tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in vocabulary[order].tolist())
    return place[codes], named


def _coded(name: str, column: pa.Array) -> tuple[list[np.ndarray], np.ndarray]:
    try:
        return encode_labels([column])
    except (SpecError, DataError) as error:
        raise DataError(Fault(name, str(error))) from None


def _whole(column: pa.Array) -> pa.Array:
    """Integers where all numbers are whole, as pandas makes floats of integers beside what is missing."""
    if pa.types.is_floating(column.type) and all(
        value.is_integer() for value in column.unique().drop_null().to_pylist()
    ):
        return column.cast(pa.int64())
    return column


def _array(name: str, values: Any) -> pa.Array:
    if isinstance(values, str | bytes | Mapping | Set) or getattr(values, "ndim", 1) != 1:
        raise DataError(Fault(name, f"is {kind_of(values)} and no column: give a list of a value for each row"))
    try:
        found = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise DataError(Fault(name, "is no column of values of one type")) from None
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _distinct(sure: np.ndarray) -> np.ndarray:
    return np.append(np.unique(sure), np.inf)[::-1]


def _corners(sure: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The thresholds between which the ROC curve does not go on in the same direction."""
    distinct, place = np.unique(sure, return_inverse=True)
    steps = np.stack([np.bincount(place, truth == kind, len(distinct)) for kind in (False, True)])[:, ::-1]
    turns = np.append(np.any(steps[:, 1:] != steps[:, :-1], axis=0), True)
    turns[:1] = True
    return np.insert(distinct[::-1][turns], 0, np.inf)


_THRESHOLDS: Final = "'every', 'roc', a number of them, or a list of numbers"
_SHOWN: Final = 5
_SMALLEST: Final = 1e-100
