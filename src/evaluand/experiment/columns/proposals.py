"""The kind of target that a column holds, and the metrics that suit it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import SpecError, plural
from evaluand.evaluation.prediction_table import label_text
from evaluand.metrics.base.labels import contents
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.names import accepted_parameters, make_metric

Kind = Literal["binary", "multiclass", "multilabel", "numeric", "text", "objects"]
KINDS: Final = ("binary", "multiclass", "multilabel", "numeric")

_POSITIVE: Final = ("1", "true", "yes", "y", "t", "positive", "pos")
_NEGATIVE: Final = ("0", "false", "no", "n", "f", "negative", "neg")
_MOST_INTEGERS: Final = 20
_EXACT: Final = 2**53
_MOST_CLASSES: Final = 10_000
_FEW: Final = 20


@dataclass(frozen=True)
class Target:
    """What the truth holds.

    Attributes:
        name: the column.
        kind: `binary`, `multiclass`, `multilabel`, `numeric`, `text` that is hardly ever equal, or `objects`.
        classes: the labels of truth and predictions.
        positive: the positive class of a binary target; None if unknown.
        type: of the labels.
    """

    name: str
    kind: Kind
    classes: Sequence[Any]
    positive: Any
    type: pa.DataType


def find_target(
    name: str,
    truth: pa.Array,
    predictions: Sequence[pa.Array],
    kind: str | None,
    pos_label: str | None,
    notes: list[str],
) -> Target:
    """The kind of target.

    Args:
        kind: states the kind instead.
        pos_label: the text of the positive class.

    Raises:
        SpecError: the values do not suit the kind, or no class is called `pos_label`.
    """
    holds = contents(truth.type)
    classes = _classes(truth, predictions) if holds in ("bools", "integers", "text", "") else []
    found = (
        _check_kind(name, kind, holds, truth, predictions, classes)
        if kind
        else _guess_kind(name, holds, truth, predictions, classes, notes)
    )
    if found not in ("binary", "multiclass", "text"):
        classes = []
    positive = _positive(name, classes, pos_label, notes) if found == "binary" else None
    if pos_label is not None and found != "binary":
        raise SpecError(f"--pos-label is for two classes; {name!r} is {found}")
    return Target(name, found, classes, positive, truth.type)


def _classes(truth: pa.Array, predictions: Sequence[pa.Array]) -> list[Any]:
    values = {value for each in (truth, *predictions) for value in pc.unique(each.drop_null()).to_pylist()}
    return sorted(values, key=lambda value: (isinstance(value, str), value))


def _check_kind(
    name: str, kind: str, holds: str, truth: pa.Array, predictions: Sequence[pa.Array], classes: Sequence[Any]
) -> Kind:
    known = pc.count_distinct(truth).as_py() if classes else 0
    fits = {
        "binary": holds in ("bools", "integers", "text") and known <= 2,
        "multiclass": holds in ("bools", "integers", "text"),
        "multilabel": holds == "lists",
        "numeric": holds in ("integers", "numbers"),
    }
    if not fits[kind]:
        count = f" with {plural(known, 'different value')}" if classes else ""
        raise SpecError(f"--kind {kind}: {name!r} holds {holds or 'nothing'}{count}")
    if kind in ("binary", "multiclass") and any(contents(each.type) == "numbers" for each in predictions):
        raise SpecError(
            f"--kind {kind}: {name!r} holds {holds}, its predictions real numbers; if they are the score of a class,"
            " give their column with --score instead of --prediction"
        )
    if kind == "binary" and len(classes) > 2:
        raise SpecError(f"--kind binary: {name!r} and its predictions have {len(classes)} different values together")
    return kind  # type: ignore[return-value]


def _guess_kind(
    name: str, holds: str, truth: pa.Array, predictions: Sequence[pa.Array], classes: Sequence[Any], notes: list[str]
) -> Kind:
    if holds == "lists":
        return "multilabel" if contents(truth.type.value_type) in ("text", "") else "objects"
    if holds == "other":
        return "objects"
    if holds == "numbers":
        return "numeric"
    known = pc.count_distinct(truth).as_py()
    if holds == "integers":
        real = any(contents(each.type) == "numbers" for each in predictions)
        if real or len(classes) > _MOST_INTEGERS:
            scores = "if predictions are the score of a class, give their column with --score instead of --prediction"
            remedy = scores if real and known <= 2 else "--kind multiclass takes them as classes"
            notes.append(f"{name!r} holds integers, taken as numbers; {remedy}")
            return "numeric"
        if len(classes) > 2:
            notes.append(
                f"{name!r} holds {len(classes)} different integers, taken as classes; --kind numeric takes them as"
                " numbers"
            )
    if known == 1:
        notes.append(f"{name!r} has one class only, {label_text(truth.drop_null()[0].as_py())!r}")
    if len(classes) <= 2:
        return "binary"
    if len(truth) > _FEW and (known > _MOST_CLASSES or 2 * known > len(truth)):
        notes.append(
            f"{name!r} has {known:,} different values in {len(truth):,} rows, so only equal texts are counted;"
            " --kind multiclass takes them as classes"
        )
        return "text"
    return "multiclass"


def _positive(name: str, classes: Sequence[Any], pos_label: str | None, notes: list[str]) -> Any:
    by_text = {label_text(label): label for label in classes}
    if pos_label is not None:
        alike = [label for text, label in by_text.items() if text.casefold() == pos_label.casefold()]
        if pos_label not in by_text and len(alike) != 1:
            raise SpecError(f"--pos-label: {name!r} has no class {pos_label!r}; it has {' and '.join(by_text)}")
        return by_text.get(pos_label, alike[0] if alike else None)
    positive = [label for text, label in by_text.items() if text.strip().casefold() in _POSITIVE]
    others = [text for text, label in by_text.items() if label not in positive]
    negative = all(text.strip().casefold() in (*_NEGATIVE, "-1") for text in others)
    if len(positive) == 1 and negative:
        notes.append(f"{label_text(positive[0])!r} counts as positive; --pos-label names another class")
        return positive[0]
    return None


def hold_few_integers(columns: Sequence[pa.Array]) -> bool:
    """Whether columns of numbers hold at most 20 different integers, also as floats.

    Example:
        >>> hold_few_integers([pa.array([1.0, 0.0, None]), pa.array([1, 1, 0])])
        True
        >>> hold_few_integers([pa.array([0.5, 0.0])])
        False
    """
    values: set[float] = set()
    for column in columns:
        values |= {*pc.unique(column.drop_null()).to_pylist()[: _MOST_INTEGERS + 1]}
        if len(values) > _MOST_INTEGERS:
            return False
    return all(abs(value) < _EXACT and float(value).is_integer() for value in values)


# Metrics


def propose_metrics(target: Target, decides: bool, gives: str) -> list[str]:
    """The names of the metrics that suit a target.

    Args:
        decides: whether all systems have predictions.
        gives: what all systems have: `probabilities`, `scores`, `confidence` or `nothing`.
    """
    if target.kind == "numeric":
        return ["mae", "rmse", "r2"]
    if target.kind == "multilabel":
        return ["accuracy", "f1_micro", "f1_macro", "hamming_loss"]
    if target.kind in ("text", "objects"):
        return ["accuracy"]
    found = []
    if decides and target.kind == "binary":
        found = ["accuracy", "f1_macro" if target.positive is None else "f1", "mcc"]
    elif decides:
        found = ["accuracy", "f1_macro", "balanced_accuracy", "mcc"]
    return [*found, *_OF_SCORES[gives]]


_OF_SCORES: Final = {
    "probabilities": ("auc", "average_precision", "brier"),
    "scores": ("auc", "average_precision"),
    "confidence": ("ece",),
    "nothing": (),
}


def named_metric(name: str, target: Target, gives: str) -> Metric:
    """A metric by its name, for the positive class of a binary target.

    Raises:
        SpecError: there is no such metric.
    """
    chosen: dict[str, Any] = {} if target.positive is None else {"label": target.positive}
    if gives in ("probabilities", "scores"):
        chosen["scored_by"] = "classes"
    return make_metric(name, **accepted_parameters(name, chosen))
