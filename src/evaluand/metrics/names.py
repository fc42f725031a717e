"""The names of metrics: what people, scikit-learn and D3M call each, and which kind with which parameters it is.

One table, `names.json`. A name means the same metric in Python, YAML, commands, gates and trade-offs, and each metric
is printed under one name (`printed_name`). A kind of a plug-in needs no entry: its registered name is its name.

Names are read without regard to case, and to hyphens, blanks and underscores: `f1Macro`, `F1_MACRO` and `f1-macro` are
`f1_macro`. A number of ranks or answers is part of a name: `ndcg@10`, `top_5_accuracy`; so is β: `f2`, `f0.5_macro`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from evaluand.core import registry
from evaluand.core.errors import SpecError
from evaluand.core.near import near
from evaluand.metrics.base.signature import encode_word, words_of

FUNCTION: Final = "function"
"""The kind of metrics that are functions of the user, which name them."""

BINARY: Final = "binary"
"""The value of `average` that stands for one class, which the truths must imply."""


@dataclass(frozen=True)
class MetricName:
    """A metric with a name.

    Attributes:
        name: the name under which it is printed.
        kind: the registered kind.
        about: what it is, in a few words, which suggestions search too.
        parameters: of the kind, by which this metric differs from the kind's defaults.
        aliases: further names: everyday ones, those of scikit-learn and those of D3M.
    """

    name: str
    kind: str
    about: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


AVERAGES: Final = {"micro": "micro", "macro": "macro", "weighted": "weighted", "samples": "example"}
"""The end of a name → the value of the parameter `average`."""

_ZERO: Final = {"zero_division": 0.0}


class OneClass(NamedTuple):
    """A metric of one class, whose name with an ending is an average over classes or rows.

    `zero` lists the endings under which scikit-learn counts an undefined ratio of a class or row as 0.
    """

    name: str
    kind: str
    about: str
    aliases: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = {}


def averaged_parameters(base: OneClass, suffix: str) -> dict[str, Any]:
    return {**base.parameters, "average": AVERAGES[suffix], **(_ZERO if suffix in base.zero else {})}


def _averaged_names(base: OneClass) -> Iterator[MetricName]:
    binary = {**base.parameters, "average": BINARY}
    yield MetricName(base.name, base.kind, base.about, binary, (*base.aliases, f"{base.name}_binary"))
    for suffix in AVERAGES:
        aliases = tuple(f"{alias}_{suffix}" for alias in base.aliases)
        words = "mean over rows" if suffix == "samples" else f"{suffix} average over classes"
        yield MetricName(
            f"{base.name}_{suffix}", base.kind, f"{base.about}, {words}", averaged_parameters(base, suffix), aliases
        )


@cache
def table() -> tuple[MetricName, ...]:
    """Every metric with a name."""
    others = (MetricName(**_with_tuples(entry)) for entry in _read()["others"])
    return (*(name for base in averaged() for name in _averaged_names(base)), *others)


@cache
def averaged() -> tuple[OneClass, ...]:
    """The metrics of one class."""
    return tuple(OneClass(**_with_tuples(entry)) for entry in _read()["averaged"])


@cache
def _read() -> dict[str, Any]:
    """`averaged`, `others` and `at_k`: what stands before `@` and a number → kind with the parameter k."""
    found: dict[str, Any] = orjson.loads(Path(__file__).with_name("names.json").read_bytes())
    return found


def _with_tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}


if TYPE_CHECKING:
    from evaluand.metrics.base.metric import Metric

GROUP: Final = "metrics"


class Resolved(NamedTuple):
    """What a name stands for: a kind with parameters."""

    kind: str
    parameters: Mapping[str, Any]


def resolve_metric(name: str) -> Resolved:
    """The kind and the parameters that a name stands for.

    Raises:
        SpecError: no metric has this name; the message suggests names by meaning and by spelling.

    Example:
        >>> resolve_metric("f1_macro")
        Resolved(kind='f_beta', parameters={'beta': 1.0, 'average': 'macro'})
        >>> resolve_metric("rocAuc").kind, resolve_metric("RMSE").kind, resolve_metric("ndcg@10")
        ('roc_auc', 'root_mean_squared_error', Resolved(kind='ndcg', parameters={'k': 10}))
        >>> resolve_metric("accurate")
        Traceback (most recent call last):
        evaluand.SpecError: no metric is called 'accurate' (did you mean 'accuracy'?)
    """
    found = _find(name)
    if found is None:
        raise SpecError(explain_unknown(name))
    return found


def is_name(name: str) -> bool:
    """Whether a metric has this name.

    Example:
        >>> is_name("mae"), is_name("eod+race")
        (True, False)
    """
    return _find(name) is not None


def usage(name: str) -> str | None:
    """How to compute the metric with a name; None if no metric has it.

    Example:
        >>> usage("accuracy_score"), usage("colour")
        ('evaluate(truth, predictions, metrics="accuracy_score")', None)
    """
    return f'evaluate(truth, predictions, metrics="{name}")' if is_name(name) else None


def explain(name: str) -> str | None:
    """What to write in place of a name that evaluand does not have.

    Example:
        >>> explain("accuracy_score"), explain("load_dataset")
        ('evaluate(truth, predictions, metrics="accuracy_score")', 'Dataset.from_data(PATH, input=…, expected=…)')
    """
    return near("names").get(name) or usage(name)


def canonical_name(name: str) -> str:
    """The first name of the metric that has a name.

    Example:
        >>> canonical_name("RMSE"), canonical_name("fscore_macro"), canonical_name("ndcg@10")
        ('root_mean_squared_error', 'f1_macro', 'ndcg@10')
    """
    found = resolve_metric(name)
    of_kind = name if found.parameters else found.kind
    return next((one.name for one in table() if (one.kind, one.parameters) == found), of_kind)


def make_metric(name: str, **parameters: Any) -> Metric:
    """The metric with a name.

    Args:
        parameters: further ones of its kind; they replace those of the name.

    Raises:
        SpecError: no metric has this name, its kind needs parameters that were not passed, or it lacks one that was.

    Example:
        >>> make_metric("f1", label="spam").signature
        'f_beta v2 missing=leave_out reduce=first label=spam beta=1.0 interval=jackknife 95%'
    """
    kind, of_name = resolve_metric(name)
    return registry.make_default(GROUP, kind, **with_parameters(of_name, parameters))  # type: ignore[no-any-return]


def with_parameters(of_name: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a name with others, which replace them.

    Example:
        >>> with_parameters({"beta": 1.0, "average": "binary"}, {"label": "spam"})
        {'beta': 1.0, 'label': 'spam'}
    """
    found = {**of_name, **parameters}
    chosen = any(parameters.get(name) is not None for name in ("label", "labels"))
    if chosen and found.get("average") == BINARY and "average" not in parameters:
        del found["average"]
    return found


def accepted_parameters(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some parameters that a metric has; those of one class only unless its name says that it is an average.

    Example:
        >>> chosen = {"label": "spam", "scored_by": "classes"}
        >>> [accepted_parameters(name, chosen) for name in ("f1", "f1_macro", "mae")]
        [{'label': 'spam'}, {}, {}]
    """
    found = resolve_metric(name)
    known = {one.name for one in dataclasses.fields(registry.find(GROUP, found.kind))}
    if found.parameters.get("average", BINARY) != BINARY:
        known -= {"label", "scored_by"}
    if "label" not in known:
        known.discard("scored_by")
    return {name: value for name, value in parameters.items() if name in known}


def as_called(metric: Metric, name: str) -> Metric | None:
    """A metric, perhaps with further parameters, if it is what a name stands for; else None.

    A metric that would decide by the truths whether it is of one class is returned as one that must be.

    Example:
        >>> macro = make_metric("f1_macro", missing="wrong")
        >>> as_called(macro, "f1Macro") is macro, as_called(macro, "f1")
        (True, None)
    """
    if metric.kind == FUNCTION:
        return metric if getattr(metric, "name", None) == name else None
    found = _find(name)
    if found is None or metric.kind != found.kind:
        return None
    own = {parameter: getattr(metric, parameter, None) for parameter in found.parameters}
    if all(own[parameter] == value for parameter, value in found.parameters.items() if value != BINARY):
        has_label = getattr(metric, "label", None) is not None
        if BINARY not in found.parameters.values() or own["average"] == BINARY or has_label:
            return metric
        if own["average"] is None and getattr(metric, "labels", None) is None:
            return dataclasses.replace(metric, average=BINARY)  # type: ignore[call-arg]
    return None


def has_name(signature: str, name: str) -> bool:
    """Whether a settled metric is what a name stands for.

    Example:
        >>> has_name("f_beta v2 label=1 beta=1.0", "f1"), has_name("f_beta v2 average=macro beta=1.0", "f1")
        (True, False)
    """
    found, words = _find(name), words_of(signature)
    if signature.startswith(f"{FUNCTION} "):
        return printed_name(FUNCTION, words)[0] == name
    if found is None or signature.partition(" ")[0] != found.kind:
        return False
    return all(_has_word(found.kind, words, parameter, value) for parameter, value in found.parameters.items())


def _has_word(kind: str, words: Mapping[str, str], parameter: str, value: Any) -> bool:
    if value == BINARY:
        settled_over_classes = kind == "average_precision" and words.get(parameter) == "macro"
        return "label" in words or parameter not in words or settled_over_classes
    return words.get(parameter) == encode_word(value)


def name_in_tables(signature: str) -> str:
    """The name under which a metric is printed, from its signature.

    Example:
        >>> name_in_tables("f_beta v2 missing=leave_out reduce=first average=macro beta=1.0 interval=jackknife 95%")
        'f1_macro'
    """
    return printed_name(signature.partition(" ")[0], words_of(signature))[0]


def printed_name(kind: str, words: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """The name of a metric in tables, and the parameters that it expresses.

    Args:
        words: the parameters as its signature writes them, see `signature.words_of`.

    Example:
        >>> printed_name("f_beta", {"": "v2", "beta": "1.0", "average": "macro"})[0]
        'f1_macro'
        >>> printed_name("f_beta", {"": "v2", "beta": "2.0", "label": "PER"})[0], printed_name("accuracy", {})[0]
        ('f2', 'accuracy')
    """
    name, expressed = kind, set[str]()
    if kind == "weighted_kappa" and words.get("weights") in ("quadratic", "linear"):
        return f"{words['weights']}_kappa", frozenset({"weights"})
    if kind == FUNCTION and "name" in words:
        return words["name"].strip('"'), frozenset({"name", "code"})
    if kind == "f_beta" and words.get("beta") == "0.0":
        return kind, frozenset()  # no name has a zero, and that of the precision is another metric's
    if kind == "f_beta" and "beta" in words:
        name = f"f{float(words['beta']):g}"
        expressed.add("beta")
    base = next((one for one in averaged() if one.kind == kind), None)
    average = words.get("average")
    if base is not None and average in AVERAGES.values():
        suffix = next(suffix for suffix, value in AVERAGES.items() if value == average)
        needed = averaged_parameters(base, suffix)
        if "zero_division" not in needed or words.get("zero_division") == "0.0":
            name = f"{name}_{suffix}"
            expressed |= {"average", *({"zero_division"} & needed.keys())}
    elif average == BINARY:
        expressed.add("average")
    return name, frozenset(expressed)


def metric_names() -> list[MetricName]:
    """All metrics with a name, sorted by it: those of the table, and the further registered kinds."""
    named = {one.name: one for one in table()}
    for kind in registry.names(GROUP):
        if kind not in _by_name():
            lines = (registry.find(GROUP, kind).__doc__ or "").strip().splitlines()
            named[kind] = MetricName(kind, kind, lines[0].rstrip(".") if lines else "")
    return [named[name] for name in sorted(named)]


def averaged_names() -> list[str]:
    """The names of metrics of one class, which have averages."""
    return [base.name for base in averaged()]


# Names that are found


@cache
def _by_name() -> dict[str, MetricName]:
    """Every name as `_normal` writes it."""
    found: dict[str, MetricName] = {}
    for one in table():
        for name in (one.name, *one.aliases):
            assert found.setdefault(name, one) is one, f"two metrics are called {name}"
    return found


def _find_numbered(form: str) -> Resolved | None:
    """What a name with a number in it stands for: with a number of ranks or answers, β, or a percentile."""
    if (ranks := re.fullmatch(r"([a-z_]+?)_?(?:@|_at_)(\d+)", form)) and (kind := _read()["at_k"].get(ranks[1])):
        return Resolved(kind, {"k": int(ranks[2])})
    if answers := re.fullmatch(r"top_?(\d+)(?:_acc(?:uracy)?(?:_score)?)?", form):
        return Resolved("top_k", {"k": int(answers[1])})
    f = re.fullmatch(r"f_?(\d+(?:\.\d+)?)(?:_score)?(?:_(micro|macro|weighted|samples))?", form)
    if f and float(f[1]) > 0:
        average = averaged_parameters(averaged()[0], f[2]) if f[2] else {"average": BINARY}
        return Resolved("f_beta", {**average, "beta": float(f[1])})
    percentile = re.fullmatch(r"p(?:ercentile_?)?(\d{1,2})", form)
    return Resolved("quantile", {"q": int(percentile[1]) / 100}) if percentile else None


def _find(name: str) -> Resolved | None:
    """What a name stands for: of the table, a registered kind, or a name with a number in it."""
    for form in dict.fromkeys((name, _normal(name), _normal(name, words=False))):
        if (known := _by_name().get(form)) is not None:
            return Resolved(known.kind, known.parameters)
        if form in registry.names(GROUP):
            return Resolved(form, {})
    return _find_numbered(_normal(name)) or _find_numbered(_normal(name, words=False))


def _normal(name: str, words: bool = True) -> str:
    """A name in lower case with underscores; with `words`, the words of `camelCase` are split too."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])", "_", name.strip()) if words else name.strip()
    return re.sub(r"_*@_*", "@", re.sub(r"[^a-z0-9@.]+", "_", split.lower().replace("'", ""))).strip("_")


# Suggestions

_NEGATED: Final = "neg_"


def explain_unknown(name: str) -> str:
    """That no metric has a name, and which it may mean: by spelling, or else by meaning."""
    normal = _normal(name)
    if normal.startswith(_NEGATED) and _find(normal.removeprefix(_NEGATED)):
        called = canonical_name(normal.removeprefix(_NEGATED))
        return (
            f"{name!r} is scikit-learn's name for {called} with its sign reversed; name {called}, "
            "which is shown without it and is better the lower it is"
        )
    if normal in _REFUSED:
        return f"{name!r} is not one metric: {_REFUSED[normal]}"
    if normal in registry.names("scorers"):
        return (
            f"{name!r} is a scorer, which grades each answer: name it under scorers, and take the metric mean of its "
            "values"
        )
    unknown = f"no metric is called {name!r}"
    by_name = {known: one for one in metric_names() for known in (one.name, *one.aliases)}
    if close := _closest(name, by_name, _CLOSE):
        return f"{unknown} (did you mean {close!r}?)"
    if similar := _nearest_in_meaning(name):
        return f"{unknown}; did you mean {' or '.join(f'{one.name} ({one.about})' for one in similar)}?"
    if close := _closest(name, by_name, _SIMILAR):
        return f"{unknown} (did you mean {close!r}?)"
    return f"{unknown}; `evaluand list metrics` shows all names"


_BRIER: Final = (
    "of two classes it is brier with halved: true, as in {kind: brier, halved: true}, and of more classes brier itself"
)
_REFUSED: Final = {"brier_score_loss": _BRIER, "brier_score": _BRIER}
"""Names of several metrics → how to name each."""


def _closest(name: str, known: Mapping[str, MetricName], cutoff: float) -> str | None:
    """The known name with the most similar spelling."""
    import difflib  # only for a wrong name: it takes a while to import

    return next(iter(difflib.get_close_matches(_normal(name), known, n=1, cutoff=cutoff)), None)


def _nearest_in_meaning(name: str) -> list[MetricName]:
    """The metrics whose names and descriptions have the most words of a name."""
    asked = _words(name)
    known = {one.name: _words(" ".join((one.name, *one.aliases, one.about))) for one in metric_names()}
    relevance = {metric: len(asked & words) / max(len(asked), 1) for metric, words in known.items()}
    ranked = sorted(metric_names(), key=lambda one: (-relevance[one.name], len(one.name)))
    best = relevance[ranked[0].name]
    return [] if best < _RELEVANT else [one for one in ranked[:_AT_MOST] if relevance[one.name] == best]


_CLOSE: Final = 0.8
_SIMILAR: Final = 0.6
_RELEVANT: Final = 0.5
_AT_MOST: Final = 2
_FILLERS: Final = frozenset(
    {"the", "of", "a", "an", "and", "under", "is", "that", "over", "by", "score", "metric", "rate"}
)


def _words(text: str) -> frozenset[str]:
    words = (word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", _normal(text)))
    split = [word for word in words if word]
    return frozenset(word for word in split if word not in _FILLERS) or frozenset(split)
