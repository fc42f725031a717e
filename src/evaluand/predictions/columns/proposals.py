"""The kind of target that a column holds, and the metrics that suit it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.fairness import Criterion, measures_of
from evaluand.aggregation.group_rules import GroupRules
from evaluand.aggregation.groups import MetricRow
from evaluand.comparison.measures import default_metric
from evaluand.core.errors import SpecError, plural
from evaluand.core.registry import split_entry
from evaluand.data.typed_columns import are_few
from evaluand.evaluation.prediction_table import HEAD, SCORER, common_type, label_text
from evaluand.metrics.base.confusion import PREDICTION
from evaluand.metrics.base.labels import contents
from evaluand.metrics.base.metric import VALUE, Metric
from evaluand.metrics.function import as_metric
from evaluand.metrics.names import (
    BINARY,
    accepted_parameters,
    explain_unknown,
    is_name,
    make_metric,
    resolve_metric,
)
from evaluand.predictions.columns.notes import Notes

Kind = Literal["binary", "multiclass", "multilabel", "spans", "numeric", "text", "objects"]
KINDS: Final = ("binary", "multiclass", "multilabel", "numeric")

_POSITIVE: Final = ("1", "true", "yes", "y", "t", "positive", "pos")
_NEGATIVE: Final = ("0", "false", "no", "n", "f", "negative", "neg")
_MOST_INTEGERS: Final = 20
_EXACT: Final = 2**53
_MOST_CLASSES: Final = 10_000
_FEW: Final = 20
_SHOWN: Final = 10


@dataclass(frozen=True)
class Target:
    """What the truth holds.

    Attributes:
        name: the column.
        kind: `binary`, `multiclass`, `multilabel`, `spans` that tags of tokens mark, `numeric`, `text` that is hardly
            ever equal, or `objects`.
        classes: the labels of truth and predictions.
        positive: the positive class of a binary target, or the class that was chosen; None if unknown.
        type: of the labels.
        chosen: whether the positive class was named, and does not follow from the labels.
        n_true: how many of the classes occur in the truth.
    """

    name: str
    kind: Kind
    classes: Sequence[Any]
    positive: Any
    type: pa.DataType
    chosen: bool = False
    n_true: int = 0


def find_target(
    name: str,
    truth: pa.Array,
    predictions: Sequence[pa.Array],
    kind: str | None,
    label: Any,
    notes: Notes,
    *,
    scored: Sequence[str] = (),
) -> Target:
    """The kind of target.

    Args:
        kind: states the kind instead.
        label: the positive class of two, or the class of several that metrics look at; or its text.
        scored: the texts of the classes that have scores; the only one of two classes is the positive one.

    Raises:
        SpecError: the values do not suit the kind, or there is no such class.
    """
    if kind is not None and kind not in KINDS:
        raise SpecError(f"{notes.option('kind', kind)}: write one of {', '.join(KINDS)}; numeric is for regression")
    holds = contents(truth.type)
    columns = (
        [each for each in (truth, *predictions) if contents(each.type) in _OF_LABELS] if holds in _OF_LABELS else []
    )
    distinct = [pc.unique(each.drop_null()).to_pylist() for each in columns]
    known = len(distinct[0]) if distinct else 0
    if known == 2 and kind in (None, "binary") and (label is not None or guess_positive(distinct[0]) is not None):
        distinct = _without_odd_predictions(name, distinct, columns, notes)
    classes = _classes(name, {value for values in distinct for value in values}, scored, notes)
    found = (
        _check_kind(name, kind, holds, known, predictions, classes, notes)
        if kind
        else _guess_kind(name, holds, truth, known, predictions, classes, notes)
    )
    if found not in ("binary", "multiclass", "text"):
        classes = []
    if label is not None and found == "numeric":
        raise SpecError(f"{notes.option('pos-label')} is for classes; {name!r} is {found}")
    if label is None and found == "binary":
        label = scored[0] if len(scored) == 1 and scored[0] in map(label_text, classes) else None
    positive = label
    if label is not None and classes:
        positive = _find_positive(name, classes, label, notes)
    elif found == "binary":
        positive = _guess_positive(classes, notes)
    if found == "binary":
        classes = _both_classes(classes, positive)
    return Target(name, found, classes, positive, truth.type, label is not None, known if classes else 0)


def _without_odd_predictions(
    name: str, distinct: list[list[Any]], columns: Sequence[pa.Array], notes: Notes
) -> list[list[Any]]:
    """The different values of truth and predictions, without few predictions that are none of the two classes."""
    truth, *predictions = columns
    odd = [column.filter(pc.invert(pc.is_in(column, pc.unique(truth)))).drop_null() for column in predictions]
    pairs = zip(odd, predictions, strict=True)
    if not any(map(len, odd)) or not all(are_few(len(o), len(c)) and 2 * len(o) < len(c) for o, c in pairs):
        return distinct
    shown = next(values[0].as_py() for values in odd if len(values))
    n = sum(map(len, odd))
    are, count = ("is", "counts") if n == 1 else ("are", "count")
    notes.append(f"{plural(n, 'prediction')}, such as {shown!r}, {are} no class of {name!r} and {count} as wrong")
    return distinct[:1]


_OF_LABELS: Final = ("bools", "integers", "text", "")
"""Contents of columns that may be labels."""


def _find_positive(name: str, classes: Sequence[Any], label: Any, notes: Notes) -> Any:
    """The class that is a label or has its text; the absent one if all rows have the same class."""
    if label in classes:
        return next(known for known in classes if known == label)
    text = label_text(label)
    found = _class_with_text(classes, text)
    if found is None and len(classes) == 1:
        found = parse_label(text, classes[0])
    if found is None:
        known = [label_text(each) for each in classes]
        more = ", …" if len(known) > _SHOWN else ""
        shown = " and ".join(known) if len(known) <= 2 else ", ".join(known[:_SHOWN]) + more
        raise SpecError(f"{notes.option('pos-label')}: {name!r} has no class {text!r}; it has {shown}")
    return found


def _class_with_text(classes: Sequence[Any], text: str) -> Any:
    """The class with a text, else the only one whose text differs in case, or whose number is equal."""
    by_text = {label_text(each): each for each in classes}
    if text in by_text:
        return by_text[text]
    alike = [label for known, label in by_text.items() if known.casefold() == text.casefold()]
    if len(alike) == 1:
        return alike[0]
    number = None if not classes or isinstance(classes[0], str | bool) else parse_label(text, classes[0])
    return number if number in classes else None


def parse_label(text: str, like: Any) -> str | int | bool | None:
    """The label with a text, of the type of another label; None if there is none.

    Example:
        >>> parse_label("2", 0), parse_label("1.0", 0), parse_label("False", True), parse_label("two", 0)
        (2, 1, False, None)
    """
    if isinstance(like, bool):
        return {"true": True, "false": False}.get(text.strip().casefold())
    if isinstance(like, str):
        return text
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _both_classes(classes: Sequence[Any], positive: Any) -> list[Any]:
    """The two classes of a binary target, also if all rows have one; scores below a threshold predict the other."""
    if positive is None or len(classes) != 1:
        return [*classes]
    if positive not in classes:
        return [*classes, positive]
    if isinstance(positive, str):
        places = {text: place for place, text in enumerate(_POSITIVE)}
        place = places.get(positive.strip().casefold())
        return [f"not {positive}" if place is None else _NEGATIVE[place], positive]
    if positive in (0, 1):
        return [type(positive)(1 - positive), positive]
    return [positive, 0]


def _classes(name: str, values: set[Any], scored: Sequence[str], notes: Notes) -> list[Any]:
    """The labels that occur, and those that have scores and occur in no row, unless a label that occurs has none."""
    texts = {label_text(value) for value in values}
    absent = [text for text in scored if text not in texts]
    if texts & {*scored} and absent and (texts <= {*scored} or len(values) + len(absent) <= 2):
        labels = [parse_label(text, next(iter(values))) for text in absent]
        if None not in labels and not {*labels} & values:
            values |= {*labels}
            notes.append(f"no row of {name!r} has the class {' or '.join(map(repr, absent))}, which has scores")
    return sorted(values, key=lambda value: (isinstance(value, str), value))


def _check_kind(
    name: str,
    kind: str,
    holds: str,
    known: int,
    predictions: Sequence[pa.Array],
    classes: Sequence[Any],
    notes: Notes,
) -> Kind:
    """The stated kind; `known` is how many values the truth has."""
    stated = notes.option("kind", kind)
    fits = {
        "binary": holds in ("bools", "integers", "text") and known <= 2,
        "multiclass": holds in ("bools", "integers", "text"),
        "multilabel": holds == "lists",
        "numeric": holds in ("integers", "numbers"),
    }
    if not fits[kind]:
        count = f" with {plural(known, 'different value')}" if classes else ""
        raise SpecError(f"{stated}: {name!r} holds {holds or 'nothing'}{count}")
    if kind in ("binary", "multiclass") and any(contents(each.type) == "numbers" for each in predictions):
        raise SpecError(
            f"{stated}: {name!r} holds {holds}, its predictions real numbers; if they are the score of a class, give"
            f" them as {notes.option('score')} instead of {notes.option('prediction')}"
        )
    if kind == "binary" and len(classes) > 2:
        raise SpecError(f"{stated}: {name!r} and its predictions have {len(classes)} different values together")
    return kind  # type: ignore[return-value]


def _guess_kind(
    name: str,
    holds: str,
    truth: pa.Array,
    known: int,
    predictions: Sequence[pa.Array],
    classes: Sequence[Any],
    notes: Notes,
) -> Kind:
    if holds == "lists":
        return "multilabel" if all(common_type(truth, each) == "labels" for each in predictions) else "objects"
    if holds == "other":
        return "objects"
    if holds == "numbers":
        return "numeric"
    if holds == "integers":
        real = any(contents(each.type) == "numbers" for each in predictions)
        if real or len(classes) > _MOST_INTEGERS:
            scores = (
                f"if predictions are the score of a class, give them as {notes.option('score')} instead of"
                f" {notes.option('prediction')}"
            )
            classes_of = f"{notes.option('kind', 'multiclass')} takes them as classes"
            remedy = scores if real and known <= 2 else classes_of
            notes.append(f"{name!r} holds integers, taken as numbers; {remedy}")
            return "numeric"
        if len(classes) > 2:
            scores = (
                f"if predictions are a score, give them as {notes.option('score')} with {notes.option('threshold')}"
                f" instead of {notes.option('prediction')}; "
            )
            notes.append(
                f"{name!r} {'and its predictions hold' if known <= 2 else 'holds'} {len(classes)} different integers,"
                f" taken as classes; {scores if known <= 2 else ''}{notes.option('kind', 'numeric')} takes them as"
                " numbers"
            )
    if known == 1:
        notes.append(f"{name!r} has one class only, {label_text(truth.drop_null()[0].as_py())!r}")
    if len(classes) <= 2:
        return "binary"
    if len(truth) > _FEW and (known > _MOST_CLASSES or 2 * known > len(truth)):
        notes.append(
            f"{name!r} has {known:,} different values in {len(truth):,} rows, so only equal texts are counted;"
            f" {notes.option('kind', 'multiclass')} takes them as classes"
        )
        return "text"
    return "multiclass"


def _guess_positive(classes: Sequence[Any], notes: Notes) -> Any:
    positive = guess_positive(classes)
    if positive is not None:
        notes.append(f"{label_text(positive)!r} counts as positive; {notes.option('pos-label')} names another class")
    return positive


def guess_positive(classes: Sequence[Any]) -> Any:
    """The class of two that counts as positive, by its text; None where none does.

    Example:
        >>> guess_positive([0, 1]), guess_positive(["No", "Yes"]), guess_positive([0]), guess_positive(["cat", "dog"])
        (1, 'Yes', 1, None)
    """
    by_text = {label_text(label): label for label in classes}
    positive = [label for text, label in by_text.items() if text.strip().casefold() in _POSITIVE]
    others = [text for text in by_text if text.strip().casefold() not in _POSITIVE]
    if len(positive) == 1 and all(text.strip().casefold() in (*_NEGATIVE, "-1") for text in others):
        return positive[0]
    if not positive and len(classes) == 1 and not isinstance(classes[0], str) and classes[0] == 0:
        return True if isinstance(classes[0], bool) else 1
    return None


def hold_few_integers(columns: Sequence[pa.Array]) -> bool:
    """Whether columns of numbers hold at most 20 different integers, also as floats.

    Example:
        >>> hold_few_integers([pa.array([1.0, 0.0, None]), pa.array([1, 1, 0])])
        True
        >>> hold_few_integers([pa.array([0.5, 0.0])])
        False
    """
    if any(len(column) > HEAD for column in columns) and not hold_few_integers([column[:HEAD] for column in columns]):
        return False
    values: set[float] = set()
    for column in columns:
        distinct = pc.unique(column.drop_null()).to_pylist()[: _MOST_INTEGERS + 1]
        values |= {*distinct}
        if len(values) > _MOST_INTEGERS or not all(map(_is_integer, distinct)):
            return False
    return True


def _is_integer(value: Any) -> bool:
    """Whether a number is an integer; as a float it must be exact."""
    return isinstance(value, int) or (abs(value) < _EXACT and float(value).is_integer())


# Metrics


_LABEL: Final = "label"


@dataclass(frozen=True)
class Proposals:
    """The metrics that suit a target and what all systems have.

    Attributes:
        decides: whether all systems have predictions.
        gives: what all systems have: `probabilities`, `scores`, `confidence` or `nothing`.
        remedy: what to write where predictions are missing.
        weighted: whether rows have weights, which every metric then uses if it can.
    """

    target: Target
    decides: bool
    gives: str
    remedy: str
    weighted: bool = False

    def names(self) -> list[str]:
        """The names of the metrics that are proposed."""
        kind = self.target.kind
        if kind == "numeric":
            return ["mae", "rmse", "r2"]
        if kind == "multilabel":
            return ["accuracy", "f1_micro", "f1_macro", "hamming_loss"]
        if kind == "spans":
            return ["accuracy", "precision_micro", "recall_micro", "f1_micro"]
        if kind in ("text", "objects"):
            return ["accuracy"]
        found = []
        if self.decides and kind == "binary":
            found = ["accuracy", "f1_macro" if self.target.positive is None else "f1", "mcc"]
        elif self.decides:
            found = ["accuracy", "f1_macro" if self.target.positive is None else "f1", "balanced_accuracy", "mcc"]
        no_positive = self.target.n_true <= 2 and self.target.positive is None
        of_scores = (name for name in _OF_SCORES[self.gives] if not (no_positive and name == "average_precision"))
        return [*found, *of_scores]

    def metric(self, entry: Any) -> Metric:
        """A metric from its name, a dictionary as in a file, a function or a metric.

        By name it looks at the positive class of a binary target, or at the class that was chosen.

        Raises:
            SpecError: there is no such metric.
        """
        if isinstance(entry, str):
            return self._make(make_metric, entry)
        if isinstance(entry, Mapping):
            name, parameters = split_entry("metrics", entry)
            return self._make(make_metric, name, **parameters)
        metric = entry if isinstance(entry, Metric) else as_metric(entry)
        if metric is None:
            raise SpecError(f"metrics: give names, functions or metrics such as Accuracy(), not {entry!r}")
        return self.weigh(metric)

    def gate_metric(self, name: str) -> Metric:
        """The metric that a gate names, which has no direction where that is a parameter; see `metric`.

        Raises:
            SpecError: there is no such metric, or it needs predictions and there are scores only.
        """
        metric = self._make(default_metric, name)
        self.require_predictions(metric)
        return metric

    def _make(self, make: Callable[..., Metric], name: str, **given: Any) -> Metric:
        if not is_name(name) and self.target.kind == "numeric":
            raise SpecError(f"{explain_unknown(name)}; for errors of numbers, name mae, rmse or r2")
        # a confidence is that of each prediction: only metrics of one class look at the positive one
        binary = resolve_metric(name).parameters.get("average") == BINARY
        parameters = self.of_class
        if self.gives == "confidence" and not (self.target.chosen or binary):
            parameters.pop("label", None)
        if given.keys() & {"label", "labels", "average"}:
            parameters.pop("label", None)
        metric = make(name, **accepted_parameters(name, parameters) | given)
        if _LABEL in metric.columns:  # of graded answers, which have a label each
            metric = make(name, **given)
        return self.weigh(metric)

    def fairness(
        self, criterion: Criterion, by: Sequence[Sequence[str]], rules: GroupRules | None, notes: Notes
    ) -> list[Measure]:
        """The measures of a criterion of fairness for the positive class.

        Raises:
            SpecError: nothing is grouped by, there is no such criterion, or no class is the positive one.
        """
        if not by:
            raise SpecError(f"{criterion} compares groups; give {notes.option('by', 'COLUMN')}")
        decides = criterion != "calibration_by_group"
        positive = self.target.positive
        if decides and positive is None and self.target.classes:
            first = notes.option("pos-label", self.target.classes[0])
            raise SpecError(f"{criterion} needs the positive class; name it, as in {first}")
        parameters = {"label": positive} if decides else self.of_class if self.target.chosen else {}
        measures = measures_of(criterion, by, scorer=SCORER, rules=rules, **parameters)
        return [replace(measure, metric=self.weigh(measure.metric)) for measure in measures]

    @property
    def of_class(self) -> dict[str, Any]:
        """The parameters of metrics that look at one class; stored as the `origin` of what is computed."""
        label = {} if self.target.positive is None else {"label": self.target.positive}
        return label | ({"scored_by": "classes"} if self.gives in ("probabilities", "scores") else {})

    def weigh(self, metric: Metric) -> Metric:
        """The metric with the weights of the rows, if there are any and it can use them."""
        can_weigh = self.weighted and any(field.name == "weighted" for field in fields(metric))
        return replace(metric, weighted=True) if can_weigh else metric  # type: ignore[call-arg]

    def require_predictions(self, metric: Metric) -> None:
        """Refuses a metric of predictions where there are scores only.

        Raises:
            SpecError: says what to write.
        """
        if not self.decides and {PREDICTION, VALUE} & {*metric.columns}:
            raise SpecError(f"{metric.kind} needs predictions, and there are scores only: give {self.remedy}")


_OF_SCORES: Final = {
    "probabilities": ("auc", "average_precision", "brier"),
    "scores": ("auc", "average_precision"),
    "confidence": ("ece",),
    "nothing": (),
}


_REVERSED: Final = 0.4
_CHANCE: Final = 0.5


def note_reversed_scores(system: str, row: MetricRow, target: Target, notes: Notes, *, of_positive: bool) -> None:
    """Notes an area under the ROC curve far below one half, where scores probably belong to the other class.

    Args:
        row: the value of a metric.
        of_positive: whether the scores are those of the positive class, whichever it is, and name no class.
    """
    is_area = row.metric == "roc_auc" and not row.by and target.kind == "binary" and target.positive is not None
    if not is_area or not row.value < _REVERSED or row.high >= _CHANCE:
        return
    for other in (label for label in target.classes if label != target.positive):
        positive, negative = (label_text(label) for label in (target.positive, other))
        remedy = notes.option("pos-label", other) if of_positive else f"{notes.option('score')} with its class"
        notes.append(
            f"the scores of {system!r} are higher where the truth is {negative!r} than where it is {positive!r}"
            f" (roc_auc {row.value:.3g}): if they are those of {negative!r}, {remedy} says so"
        )
