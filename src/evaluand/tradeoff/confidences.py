"""Confidences of one or several models on the same examples, with the truth.

The operating points of a model are counts of its decisions at thresholds, by group. One pass over the rows finds the
two thresholds that each row lies between; the counts above a threshold are cumulative sums of these, so a thousand
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

from evaluand.aggregation.groups import group_text
from evaluand.core.errors import DataError, Fault, SpecError, kind_of, pluralize
from evaluand.data.typed_columns import as_integers
from evaluand.metrics.base.labels import encode_labels, in_order
from evaluand.tradeoff.arguments import read_columns, read_list

Thresholds = Literal["every", "roc"]
"""`every`: each distinct confidence of the model, and infinity, which no row reaches. `roc`: only those at corners of
the ROC curve."""

AT_ONCE: Final = 1 << 24
"""The most numbers in memory at once."""

READ: Final = "use Confidences.read"
"""The hint of a message where an argument is of another type."""

CELLS: Final = ((False, False), (False, True), (True, False), (True, True))
"""The truth and the decision that each cell counts."""


class Groups(NamedTuple):
    """The group of each row (-1 where unknown), with the weights and clusters of the rows."""

    code: np.ndarray
    names: tuple[Mapping[str, str], ...]
    weight: np.ndarray | None = None
    cluster: np.ndarray | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Confidences:
    """Models of one system on the same rows.

    Attributes:
        truth: which rows are positive.
        models: model → its confidence that each row is positive.
        attributes: attribute → the value of each row as a code into names, -1 for none.
        system: the name of the system that the models belong to.
        weight: the weight of each row; None where all weights are equal.
        cluster: the cluster of each row, for intervals; None where rows are independent.
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
            truth: n labels of two classes.
            models: model → n finite numbers, higher for rows that are more likely positive; or a frame of these.
            by: attribute → n values, or a frame of these; None for a row without a value.
            label: the positive label; by default `True` of bools and 1 of integers.
            system: the name of the system that the models belong to.
            weight: n numbers of 0 or more: the weight of each row in all values; rows of weight 0 are dropped.
            cluster: n values, equal for rows that belong together (of one person, replications of one example).
                Intervals come from the spread between clusters. None for an independent row.

        Raises:
            DataError: columns differ in length, a truth is missing, a confidence is not a finite number, or weights
                are negative or all 0.
            SpecError: there are not two labels, or the positive one is unknown.

        Example:
            >>> confidences = Confidences.read([0, 1], {"tree": [0.2, 0.9]}, {"sex": ["f", "m"]})
            >>> confidences.truth, list(confidences.models)
            (array([False,  True]), ['tree'])
        """
        columns = {} if models is None else read_columns("models", models, "{'tree': [0.2, 0.9]}")
        if not columns:
            raise SpecError("models is empty; give the confidences of each model by its name")
        groups = {} if by is None else read_columns("by", by, "{'sex': ['f', 'm']}")
        for name in groups:
            if "," in name or name != name.strip() or not name.isprintable() or not name:
                hint = "rename it: printable text without commas, and without blanks at its ends"
                raise SpecError(f"by: no objective can name the attribute {name!r}; {hint}")
        if not isinstance(system, str):
            raise SpecError(f"system={system!r} must be text, such as 'linear'")
        positive = _read_truth(as_integers(_read_array("truth", truth)), label)
        n, faults = len(positive), list[Fault]()
        confidences = {name: _read_numbers(f"models[{name!r}]", each, n, faults) for name, each in columns.items()}
        attributes = {name: _read_codes(f"by[{name!r}]", each, n, faults) for name, each in groups.items()}
        weights = None if weight is None else _read_weights(weight, n, faults)
        clusters = None if cluster is None else _read_clusters(cluster, n, faults)
        if faults:
            raise DataError(faults)
        if not n:
            raise DataError(Fault("truth", "has no rows; give at least one"))
        return cls(positive, confidences, attributes, system, weights, clusters)._normalise_rows()

    def __repr__(self) -> str:
        rows = f"{len(self.truth):,} rows, {int(self.truth.sum()):,} of them positive"
        return f"<Confidences {self.system!r}: {rows}; models {[*self.models]}, attributes {[*self.attributes]}>"

    @property
    def effective(self) -> float:
        """The effective number of rows, or of clusters, by Kish's formula."""
        weight = np.ones(len(self.truth)) if self.weight is None else self.weight
        each = weight if self.cluster is None else np.bincount(self.cluster, weight)
        return float(np.square(each.sum()) / np.square(each).sum())

    def has_same_rows(self, other: Confidences) -> bool:
        """Whether the truths, and the confidences of all models that both have, are equal row by row."""
        shared = [name for name in self.models if name in other.models]
        return bool(
            np.array_equal(self.truth, other.truth)
            and shared
            and all(np.array_equal(self.models[name], other.models[name]) for name in shared)
        )

    def probabilities(self, model: str) -> np.ndarray:
        """A model's confidence that each row is positive.

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
        by = read_list("by", by, str, "['sex']")
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
        used, code = np.unique(packed[known], return_inverse=True)
        codes_of_rows = np.full(len(self.truth), -1, np.int64)
        codes_of_rows[known] = code
        places = np.unravel_index(used, [len(each) for each in names])
        values = zip(*([each[i] for i in place] for each, place in zip(names, places, strict=True)), strict=True)
        groups = tuple(dict(zip(by, each, strict=True)) for each in values)
        return Groups(codes_of_rows, groups, self.weight, self.cluster)

    def threshold_groups(self, by: Sequence[str]) -> tuple[Mapping[str, str], ...]:
        """The groups for separate thresholds; every row belongs to one.

        Raises:
            SpecError: there is no such attribute, or a row belongs to no group.
        """
        groups = self.groups(by)
        self._threshold_group_codes(by, groups.names)
        return groups.names

    def iterate_counts(
        self,
        model: str,
        by: Sequence[str],
        thresholds: np.ndarray,
        threshold_groups: Sequence[Mapping[str, str]] = (),
        *,
        with_products: bool = False,
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
        """The counts of a model's decisions at some points, one block of points after the other.

        Args:
            by: attributes whose groups are counted.
            thresholds: of each point; points × groups where groups have separate thresholds.
            threshold_groups: these groups, as from the method `threshold_groups`.
            with_products: whether to compute the products of counts too.

        Yields:
            The block of points, `counts_at`, and `products_at` if asked for.

        Raises:
            SpecError: the counts of a single point are too many, a row has no threshold, or a cluster has rows of
                several thresholds where products are asked for.
        """
        groups, confidence = self.groups(by), self.probabilities(model)
        products = with_products and (self.weight is not None or self.cluster is not None)
        size = len(groups.names) * len(CELLS) ** (2 if products else 1)
        what = f"counts of {len(groups.names):,} groups"
        steps = list(in_blocks(len(thresholds), size, what))
        if not threshold_groups:
            for step in steps:
                rows = confidence, self.truth, groups, thresholds[step]
                yield step, counts_at(*rows), products_at(*rows) if products else None
            return
        codes, parts, places = self._threshold_group_codes([*threshold_groups[0]], threshold_groups), [], []
        if products:
            self._check_clusters_within(codes)
        for number in range(len(threshold_groups)):
            distinct, place = np.unique(thresholds[:, number], return_inverse=True)
            next(in_blocks(1, len(distinct) * size, f"{what} at {len(distinct):,} thresholds"))
            rows_of_group = groups._replace(code=np.where(codes == number, groups.code, -1))
            rows = confidence, self.truth, rows_of_group, distinct
            parts.append((counts_at(*rows), products_at(*rows) if products else None))
            places.append(place.ravel())
        counts, squares = zip(*parts, strict=True)
        for step in steps:
            yield step, _sum_groups(counts, places, step), _sum_groups(squares, places, step) if products else None

    def _check_clusters_within(self, codes: np.ndarray) -> None:
        """Refuses clusters across groups with separate thresholds: their products are not sums over the groups."""
        if self.cluster is None:
            return
        pairs = np.unique(np.stack([self.cluster, codes]), axis=1)
        if pairs.shape[1] > len(np.unique(self.cluster)):
            problem = "points have no intervals, as some clusters have rows of several groups with separate thresholds"
            raise SpecError(f"{problem}; use one threshold for all groups")

    def _threshold_group_codes(self, by: Sequence[str], groups: Sequence[Mapping[str, str]]) -> np.ndarray:
        """The place, among groups with separate thresholds, of each row's group."""
        rows, places = self.groups(by), {tuple(name.values()): place for place, name in enumerate(groups)}
        missing = int((rows.code < 0).sum())
        if missing:
            have = pluralize(missing, "has", "have")
            problem = f"{missing:,} of {len(self.truth):,} rows {have} no {' or no '.join(by)}, and so no threshold"
            raise SpecError(f"{problem}; leave such rows out, or assign them to a group")
        for name in rows.names:
            if tuple(name.values()) not in places:
                raise SpecError(f"rows of {group_text(name)} have no threshold, as the points have none for this group")
        place = np.array([places[tuple(name.values())] for name in rows.names], np.int64)
        return np.asarray(place[rows.code])

    def thresholds(
        self, model: str, which: Thresholds | int | Sequence[float], rows: np.ndarray | None = None
    ) -> np.ndarray:
        """The thresholds of a model.

        Args:
            which: see `Thresholds`; or a number of thresholds, evenly from 0 to 1; or a list of thresholds.
            rows: a mask of the rows to read; all by default.

        Raises:
            SpecError: these are not thresholds.
        """
        confidence = self.probabilities(model)
        if isinstance(which, str):
            if which not in ("every", "roc"):
                raise SpecError(f"thresholds={which!r} must be {_THRESHOLDS}")
            some = slice(None) if rows is None else rows
            if which == "every":
                return np.append(np.unique(confidence[some]), np.inf)[::-1]
            return _roc_corners(confidence[some], self.truth[some])
        if isinstance(which, int | np.integer) and not isinstance(which, bool):
            if not 2 <= which <= AT_ONCE:
                raise SpecError(f"thresholds={which} must be 2 or more, from 0 to 1, and {AT_ONCE:,} at most")
            return np.linspace(0.0, 1.0, int(which))
        try:
            values = np.asarray(which)
        except ValueError:  # lists of different lengths
            values = np.empty(0, np.object_)
        if values.ndim != 1 or not len(values):
            raise SpecError(f"thresholds must be {_THRESHOLDS} that is not empty")
        if values.dtype.kind not in "iuf" or np.isnan(values).any():
            raise SpecError(f"thresholds must be {_THRESHOLDS}; some of these are not numbers")
        return values.astype(np.float64)

    def _normalise_rows(self) -> Confidences:
        """The same without rows of weight 0, and without weights or clusters that make no difference."""
        counted = np.ones(len(self.truth), bool) if self.weight is None else self.weight > 0
        weight, cluster = (None if each is None else each[counted] for each in (self.weight, self.cluster))
        if weight is not None and not _SMALLEST < weight.max() < 1 / _SMALLEST:
            weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))  # so that sums and squares are numbers
        if weight is not None and np.ptp(weight) == 0:
            weight = None
        if cluster is not None:
            cluster = np.unique(cluster, return_inverse=True)[1]
            cluster = None if cluster.max() == len(cluster) - 1 else cluster
        return replace(
            self,
            truth=self.truth[counted],
            models={name: each[counted] for name, each in self.models.items()},
            attributes={name: (code[counted], names) for name, (code, names) in self.attributes.items()},
            weight=weight,
            cluster=cluster,
        )


def counts_at(confidence: np.ndarray, truth: np.ndarray, groups: Groups, thresholds: np.ndarray) -> np.ndarray:
    """How many rows have each truth and decision: thresholds × groups × `CELLS`; weighted where rows have weights.

    A row whose confidence reaches the threshold is decided positive.

    Example:
        >>> groups = Groups(np.array([0, 0, 1]), ({"g": "a"}, {"g": "b"}))
        >>> counts_at(np.array([0.2, 0.5, 0.9]), np.array([False, True, True]), groups, np.array([0.5]))
        array([[[1, 0, 0, 1],
                [0, 0, 0, 1]]])
    """
    if thresholds.ndim != 1:
        raise SpecError("separate thresholds of groups need `iterate_counts`; give one threshold for all groups")
    order = np.argsort(thresholds)
    table = bin_rows(confidence, truth, groups, thresholds[order])
    counts = np.empty((len(thresholds), *table.shape[1:-1], 4), table.dtype)
    counts[order] = cells_of(table)
    return counts


def products_at(confidence: np.ndarray, truth: np.ndarray, groups: Groups, thresholds: np.ndarray) -> np.ndarray | None:
    """The products of the counts of each two cells, by cluster and summed over clusters.

    The variance of any function of counts by cluster is made of them. A row that comes to reach a threshold adds to the
    products what its cluster has so far, so one pass over the rows serves all thresholds.

    Returns:
        Thresholds × groups × `CELLS` × `CELLS`; None for independent rows of equal weight, where counts suffice.
    """
    if groups.weight is None and groups.cluster is None:
        return None
    known = groups.code >= 0
    group, n = groups.code[known], int(known.sum())
    weight = np.ones(n) if groups.weight is None else groups.weight[known]
    cluster = np.arange(n) if groups.cluster is None else groups.cluster[known]
    ordered = np.argsort(thresholds)
    reached = np.searchsorted(thresholds[ordered], confidence[known], side="right")
    order = np.lexsort((-reached, cluster, group))
    group, cluster, reached, weight = group[order], cluster[order], reached[order], weight[order]
    positive = truth[known][order]
    unit = np.cumsum((np.diff(group, prepend=-1) != 0) | (np.diff(cluster, prepend=-1) != 0)) - 1
    weights = np.stack([weight * ~positive, weight * positive])  # of negative and of positive rows
    total = np.stack([np.bincount(unit, each) for each in weights])
    start = np.cumsum(total, axis=1) - total
    before = np.cumsum(weights, axis=1) - weights - start[:, unit]
    place = reached * len(groups.names) + group
    shape = len(thresholds) + 1, len(groups.names)

    def sum_reaching(added: np.ndarray) -> np.ndarray:
        table = np.bincount(place, added, math.prod(shape)).reshape(shape)
        return np.flip(np.cumsum(np.flip(table, 0), 0), 0)[1:]

    fp, tp = weights
    all_fp, all_tp = total[:, unit]
    fp_before, tp_before = before
    fp_fp, tp_tp = sum_reaching(fp * (2 * fp_before + fp)), sum_reaching(tp * (2 * tp_before + tp))
    fp_tp = sum_reaching(fp * tp_before + tp * fp_before)
    fp_p, fp_n, tp_p, tp_n = (sum_reaching(a * b) for a, b in product((fp, tp), (all_tp, all_fp)))
    group_of_unit = group[np.flatnonzero(np.diff(unit, prepend=-1))]
    nn, pn, pp = (np.bincount(group_of_unit, a * b, shape[1]) for a, b in combinations_with_replacement(total, 2))
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
    products = np.empty((*fp_fp.shape, len(CELLS), len(CELLS)))
    for (i, j), each in upper.items():
        products[ordered, :, i, j] = products[ordered, :, j, i] = each
    return products


def _sum_groups(tables: Sequence[Any], places: Sequence[np.ndarray], step: slice) -> np.ndarray:
    """The sum over the groups, of each point, of the counts at the groups' thresholds."""
    return reduce(np.add, (table[place[step]] for table, place in zip(tables, places, strict=True)))


def bin_rows(confidence: np.ndarray, truth: np.ndarray, groups: Groups, thresholds: np.ndarray) -> np.ndarray:
    """The number of rows that reach so many of the sorted thresholds: (thresholds + 1) × groups × truth."""
    known = groups.code >= 0
    reached = np.searchsorted(thresholds, confidence[known], side="right")
    place = (reached * len(groups.names) + groups.code[known]) * 2 + truth[known]
    shape = (len(thresholds) + 1, len(groups.names), 2)
    weight = None if groups.weight is None else groups.weight[known]
    return np.bincount(place, weight, int(np.prod(shape))).reshape(shape)


def cells_of(table: np.ndarray) -> np.ndarray:
    """The counts at each threshold, from `bin_rows` with any leading axes: … × thresholds × groups × `CELLS`."""
    above = np.flip(np.cumsum(np.flip(table, -3), -3), -3)
    positive = above[..., 1:, :, :]
    integers = table.dtype.kind in "iu"  # differences of sums of weights would not be 0 for empty cells
    below = above[..., :1, :, :] - positive if integers else np.cumsum(table, -3)[..., :-1, :, :]
    return np.stack([below[..., 0], positive[..., 0], below[..., 1], positive[..., 1]], axis=-1)


def in_blocks(n: int, size: int, what: str) -> Iterator[slice]:
    """Blocks of n thresholds, each small enough for memory; `what` describes the `size` numbers of each."""
    if size > AT_ONCE:
        raise SpecError(f"{what} would need {size:,} numbers; at most {AT_ONCE:,} are allowed; group by fewer values")
    step = max(1, AT_ONCE // max(size, 1))
    yield from (slice(start, min(start + step, n)) for start in range(0, n, step))


def positive_label(labels: Sequence[Any], label: str | int | bool | None) -> Any:
    """The positive one of the labels: the one asked for, else `True` of bools and 1 of integers."""
    if label is None:
        label = next((one for one in (True, 1) if all(isinstance(x, type(one)) and x in (0, 1) for x in labels)), None)
        if label is None:
            examples = ", ".join(map(repr, labels[:_SHOWN]))
            raise SpecError(f"which label is positive? The truth has {examples}; give one of them as label")
    elif label not in labels and len(labels) > 1:
        raise SpecError(f"no truth is {label!r}; there are {', '.join(map(repr, labels[:_SHOWN]))}")
    return label


def _read_truth(truth: pa.Array, label: Any) -> np.ndarray:
    """Which rows are positive."""
    if truth.null_count:
        row = int(np.flatnonzero(truth.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(Fault(f"truth[{row}]", "is missing; leave out the rows without a truth"))
    [codes], vocabulary = _encode("truth", truth)
    labels = vocabulary.tolist()
    label = label.item() if isinstance(label, np.generic) else label
    if label is not None and not isinstance(label, str | int):
        raise SpecError(f"label={label!r} must be one of the labels of the truth: {', '.join(map(repr, labels[:5]))}")
    label = positive_label([labels[i] for i in in_order(vocabulary)], label)
    others = [one for one in labels if one != label]
    if len(others) > 1:
        raise SpecError(
            f"a threshold separates two classes; besides {label!r} the truth has {others[0]!r} and {others[1]!r}"
        )
    return np.asarray(codes == (labels.index(label) if label in labels else -1))


def _read_numbers(name: str, values: Any, n: int, faults: list[Fault]) -> np.ndarray:
    unit = "weight" if name == "weight" else "confidence"
    try:
        numbers = _read_array(name, values).cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, DataError):
        faults.append(Fault(name, f"is not a column of numbers; give a {unit} for each row"))
        return np.zeros(n)
    if len(numbers) != n:
        faults.append(Fault(name, f"has {len(numbers)} {unit}s and there are {n} truths"))
    elif not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        faults.append(Fault(f"{name}[{row}]", "is not a finite number; correct it, or leave out the row"))
    return np.asarray(numbers)


def _read_weights(values: Any, n: int, faults: list[Fault]) -> np.ndarray:
    weights = _read_numbers("weight", values, n, faults)
    if (weights < 0).any():
        faults.append(Fault(f"weight[{int(np.argmax(weights < 0))}]", "is negative; a weight is 0 or more"))
    elif n and not weights.any() and not faults:
        faults.append(Fault("weight", "is 0 for all rows; at least one must be above 0"))
    return weights


def _read_clusters(values: Any, n: int, faults: list[Fault]) -> np.ndarray:
    [codes], _ = encode_labels([_read_array("cluster", values)])
    if len(codes) != n:
        faults.append(Fault("cluster", f"has {len(codes)} values and there are {n} truths"))
    return np.where(codes < 0, len(codes) + np.arange(len(codes)), codes)


def _read_codes(name: str, values: Any, n: int, faults: list[Fault]) -> tuple[np.ndarray, tuple[str, ...]]:
    try:
        [codes], vocabulary = _encode(name, as_integers(_read_array(name, values)))
    except DataError as error:
        faults.extend(error.faults)
        return np.empty(0, np.int64), ()
    if len(codes) != n:
        faults.append(Fault(name, f"has {len(codes)} values and there are {n} truths"))
    order = in_order(vocabulary)
    place = np.empty(len(order) + 1, np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    texts = tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in vocabulary[order].tolist())
    return place[codes], texts


def _encode(name: str, column: pa.Array) -> tuple[list[np.ndarray], np.ndarray]:
    try:
        return encode_labels([column])
    except (SpecError, DataError) as error:
        raise DataError(Fault(name, str(error))) from None


def _read_array(name: str, values: Any) -> pa.Array:
    if isinstance(values, str | bytes | Mapping | Set) or getattr(values, "ndim", 1) != 1:
        raise DataError(Fault(name, f"is {kind_of(values)} and not a column; give a list with a value for each row"))
    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise DataError(Fault(name, "is not a column of values of one type")) from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _roc_corners(confidence: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The thresholds at which the ROC curve changes its direction."""
    distinct, place = np.unique(confidence, return_inverse=True)
    steps = np.stack([np.bincount(place, truth == kind, len(distinct)) for kind in (False, True)])[:, ::-1]
    turns = np.append(np.any(steps[:, 1:] != steps[:, :-1], axis=0), True)
    turns[:1] = True
    return np.insert(distinct[::-1][turns], 0, np.inf)


_THRESHOLDS: Final = "'every', 'roc', a number of them, or a list of numbers"
_SHOWN: Final = 5
_SMALLEST: Final = 1e-100
