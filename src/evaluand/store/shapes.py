"""What manifests contain, by kind of artifact: everything on which readers rely.

The digest of a manifest finds damage, but whoever makes a store can write a digest that matches any content. So a
manifest is compared with its shape whenever it is read, and readers need not doubt it again. Parts that only the code
of a kind understands (the identity of a task, of a scorer, the parameters of a metric) are objects here, and that code
refuses what it cannot use. Further keys are allowed: other versions may write them.

A check returns an empty text if a value is valid, otherwise where it is not and why:

    >>> check_manifest({"kind": "runs", "spec": {"task": []}}, sealed=False)
    'attempt: is missing'
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Final

from evaluand.core.errors import EngineError, SpecError, kind_of, singular
from evaluand.store.journal import MOST_SLOTS

ID: Final = re.compile(r"[0-9a-f]{32}")
MOST_NAME: Final = 4096  # characters
_MOST: Final = 1 << 63
_SHOWN: Final = 40

Check = Callable[[Any], str]


def check_manifest(manifest: Mapping[str, Any], *, sealed: bool) -> str:
    """Where a manifest is not one of its kind, and why, such as `spec.labels[0]: expected a text, found null`."""
    shapes = _SEALED if sealed else _OPEN
    reason = shapes[manifest["kind"]](manifest) or _MATCHES[manifest["kind"]](manifest, sealed)
    return reason.removeprefix(".")


def require_shape(manifest: Mapping[str, Any], *, sealed: bool) -> None:
    """Refuses a manifest that readers would refuse, before it is written.

    Args:
        manifest: as readers parse it: without tuples, arrays and enums.

    Raises:
        SpecError: what was passed to evaluand has another type than readers expect, with its JSON path.
        EngineError: the same of a part that evaluand has made.
    """
    if reason := check_manifest(manifest, sealed=sealed):
        message = f"the {singular(manifest['kind'])} cannot be stored: {reason}"
        raise (SpecError if reason.startswith(_FROM_CALLERS) else EngineError)(message)


_FROM_CALLERS: Final = ("name", "spec", "provenance", "app", "work")


# Values


def _mismatch(what: str, value: Any) -> str:
    return f": expected {what}, found {_describe(value)}"


def _describe(value: Any) -> str:
    if type(value) in (bool, type(None)):
        return {None: "null", True: "true", False: "false"}[value]
    if type(value) in (str, int, float):
        text = repr(value) if type(value) is str else str(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return kind_of(value)


def _text(value: Any) -> str:
    return "" if type(value) is str else _mismatch("a text", value)


def _short_text(value: Any) -> str:
    """Of what the catalog keeps for every artifact of a store."""
    is_short = type(value) is str and len(value) <= MOST_NAME
    return _text(value) or ("" if is_short else f": expected at most {MOST_NAME:,} characters, found {len(value):,}")


def _flag(value: Any) -> str:
    return "" if type(value) is bool else _mismatch("true or false", value)


def _count(value: Any) -> str:
    return "" if type(value) is int and 0 <= value < _MOST else _mismatch("a count", value)


def _integer(value: Any) -> str:
    return "" if type(value) is int else _mismatch("a whole number", value)


def _id(value: Any) -> str:
    return "" if type(value) is str and ID.fullmatch(value) else _mismatch("an id of 32 hexadecimal digits", value)


def _time(value: Any) -> str:
    try:
        dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return _mismatch("a time", value)
    return ""


def _number(value: Any) -> str:
    return "" if type(value) in (int, float) and value == value else _mismatch("a number", value)


def _seconds(value: Any) -> str:
    is_valid = type(value) in (int, float) and 0 < value < math.inf
    return "" if is_valid else _mismatch("a number of seconds", value)


def _confidence(value: Any) -> str:
    return "" if type(value) is float and 0 < value < 1 else _mismatch("a number between 0 and 1", value)


def _anything(value: Any) -> str:
    return ""


def _scalar(value: Any) -> str:
    return "" if type(value) in (str, int, float, bool) else _mismatch("a text or a number", value)


# Values made of others


def _or_null(check: Check) -> Check:
    return lambda value: "" if value is None else check(value)


def _one_or_list(check: Check) -> Check:
    each = _list(check)
    return lambda value: each(value) if type(value) is list else check(value)


def _list(check: Check) -> Check:
    def check_list(value: Any) -> str:
        if type(value) is not list:
            return _mismatch("a list", value)
        for place, item in enumerate(value):
            if reason := check(item):
                return f"[{place}]{reason}"
        return ""

    return check_list


def _map(check: Check) -> Check:
    def check_map(value: Any) -> str:
        if type(value) is not dict:
            return _mismatch("an object", value)
        for name, item in value.items():
            if reason := check(item):
                return f".{_describe_key(name)}{reason}"
        return ""

    return check_map


def _object(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    checks = [*required.items()]
    others = [*(optional or {}).items()]

    def check_object(value: Any) -> str:
        if type(value) is not dict:
            return _mismatch("an object", value)
        for name, check in checks:
            if name not in value:
                return f".{name}: is missing"
            if reason := check(value[name]):
                return f".{name}{reason}"
        for name, check in others:
            if name in value and (reason := check(value[name])):
                return f".{name}{reason}"
        return ""

    return check_object


def _describe_key(name: str) -> str:
    return name if name.isidentifier() else repr(name[:_SHOWN])


_OBJECT: Final = _map(_anything)
_TEXTS: Final = _list(_text)
_NAMES: Final = _one_or_list(_text)
_IDS: Final = _list(_id)
_COUNTS: Final = _map(_count)


def _ends(value: Any) -> str:
    return _list(_number)(value) or ("" if len(value) == 2 else _mismatch("two numbers", value))


_RANGES: Final = _or_null(_map(_map(_ends)))


# Specs


_ROLE: Final = _or_null(_text)
_ROLE_COLUMNS: Final = {
    "attributes": _TEXTS,
    "cluster": _ROLE,
    "expected": _or_null(lambda value: _map(_text)(value) if type(value) is dict else _text(value)),
    "id": _ROLE,
    "input": _NAMES,
    "metadata": _TEXTS,
    "weight": _ROLE,
}


def _closed_object(check: Check, known: Mapping[str, Any], what: str) -> Check:
    def check_closed(value: Any) -> str:
        if reason := check(value):
            return reason
        further = next((name for name in value if name not in known), None)
        return "" if further is None else f".{_describe_key(further)}: is not {what}"

    return check_closed


_ROLES: Final = _closed_object(_object({"input": _NAMES}, _ROLE_COLUMNS), _ROLE_COLUMNS, "a role")


def _task(value: Any) -> str:
    if type(value) is dict and value.get("kind") == "app":
        return _object({"recording": _id}, {"name": _or_null(_text), "version": _or_null(_scalar)})(value)
    return _OBJECT(value)


_KIND: Final = _object({"kind": _text}, {"parameters": _OBJECT})
_METRIC: Final = _object({"kind": _text, "parameters": _OBJECT})
_MEASURE: Final = _object(
    {"scorer": _text, "metric": _METRIC, "by": _list(_NAMES)},
    {"disparities": _TEXTS, "criterion": _or_null(_text), "called": _TEXTS, "where": _or_null(_text), "rules": _OBJECT}
    | {"worst_groups": _OBJECT},
)
_OF_TRADEOFF: Final = {
    "objectives": _TEXTS,
    "name": _text,
    "tasks": _TEXTS,
    "thresholds": _anything,
    "label": _or_null(_scalar),
    "scorer": _or_null(_text),
}
_TRADEOFF: Final = _closed_object(_object({"objectives": _TEXTS}, _OF_TRADEOFF), _OF_TRADEOFF, "a part of a trade-off")
_LEFT_OUT: Final = _object({"scorer": _text, "metric": _text, "reason": _text}, {"signature": _or_null(_text)})
_APP: Final = _object({}, {"name": _or_null(_text), "version": _or_null(_scalar)})
_JUDGE: Final = _object({"name": _text, "digest": _id, "spec": _OBJECT})
_COMPARED: Final = {
    "evaluations": _TEXTS,
    "runs": _TEXTS,
    "datasets": _TEXTS,
    "labels": _TEXTS,
    "measures": _list(_MEASURE),
}
_PEOPLE: Final = {"people": _list(_or_null(_text))}
_SPECS: Final[dict[str, Check]] = {
    "datasets": _object({"digest": _text, "roles": _ROLES}),
    "runs": _object({"task": _task, "dataset": _id, "examples": _count, "replications": _count, "seed": _integer}),
    "evaluations": _object({"run": _text, "dataset": _id, "scorers": _map(_OBJECT)}, {"attempt": _id}),
    "aggregations": _object(_COMPARED, {"tradeoffs": _list(_TRADEOFF)} | _PEOPLE),
    "comparisons": _object(
        _COMPARED | {"confidence": _confidence, "flips": _count}, {"left_out": _list(_LEFT_OUT)} | _PEOPLE
    ),
    "matches": _object(
        {"systems": _TEXTS},
        {"runs": _TEXTS, "dataset": _id, "judge": _OBJECT, "schedule": _KIND, "orders": _text, "seed": _integer}
        | {"limit": _count, "battles": _text, "file": _OBJECT},
    ),
    "ratings": _object({"matches": _TEXTS, "systems": _TEXTS, "confidence": _confidence, "method": _METRIC}),
    "cards": _object(
        {
            "judge": _JUDGE,
            "labels": _id,
            "judgements": _id,
            "items": _count,
            "confidence": _confidence,
            "options": _OBJECT,
        },
        {"part": _or_null(_OBJECT)},
    ),
    "recordings": _object({"app": _APP, "attempts": _count, "feedbacks": _map(_OBJECT), "mode": _text}),
}


# Provenance


_PARTS: Final = _object(
    {"of": _text, "name": _text, "split": _text, "instructions": _text, "material": _TEXTS}, {"most": _count}
)


def _division(value: Any) -> str:
    """How a rubric divides a text: the fields, and the words of the request."""
    if type(value) is not list or len(value) != 2:
        return _mismatch("an object and a text", value)
    return f"[0]{reason}" if (reason := _PARTS(value[0])) else f"[1]{reason}" if (reason := _text(value[1])) else ""


_MESSAGE: Final = _object({"role": _text, "content": _text})
_RUBRIC: Final = _object(
    {
        "title": _text,
        "content": _object(
            {
                "reading": _count,
                "opening": _list(_MESSAGE),
                "material": _NAMES,
                "optional": _TEXTS,
                "schema": _OBJECT,
                "values": _list(_list(_anything)),
                "parts": _or_null(_division),
            }
        ),
    },
    {"question": _text, "then": _OBJECT},
)
_DEFAULTED: Final = _object({"rows": _count, "of": _count, "reasons": _COUNTS})
_FACTS: Final = {
    "evaluand": _or_null(_text),
    "python": _or_null(_text),
    "platform": _or_null(_text),
    "packages": _or_null(_map(_or_null(_text))),
    "git": _or_null(_object({}, {"commit": _or_null(_text), "changed": _or_null(_flag)})),
    "origin": _or_null(_OBJECT),
    "parts": _or_null(_OBJECT),
    "policy": _or_null(_map(_or_null(_scalar))),
    "task": _text,
    "unpinned": _or_null(_TEXTS),
    "judges": _or_null(_TEXTS),
    "rubrics": _map(_list(_RUBRIC)),
    "defaulted": _or_null(_DEFAULTED),
    "ranges": _RANGES,
    "source": _or_null(_text),
}
_ORIGIN: Final = _object({"kind": _text, "id": _id})
_RECORDED: Final = {
    "columns": _map(_map(_text)),
    "forms": _map(_or_null(_OBJECT)),
    "timeout": _or_null(_seconds),
}
_ENDED: Final = {"run": _or_null(_id), "evaluation": _or_null(_id), "higher_is_better": _map(_or_null(_flag))}
_PROVENANCES: Final[dict[str, Check]] = {
    "datasets": _object({}, _FACTS),
    "runs": _object({}, _FACTS),
    "evaluations": _object({"run": _id}, _FACTS),
    "aggregations": _object({"evaluations": _IDS}, _FACTS),
    "comparisons": _object({"evaluations": _IDS, "labels": _TEXTS}, _FACTS),
    "matches": _object({"runs": _IDS}, _FACTS | {"fields": _map(_text)}),
    "ratings": _object({"matches": _IDS}, _FACTS),
    "cards": _object(
        {"made_from": _list(_ORIGIN)}, _FACTS | {"usage": _OBJECT, "seconds": _or_null(_map(_number)), "judge": _OBJECT}
    ),
    "recordings": _object(_RECORDED, _FACTS | _ENDED),
}


# Manifests


def _works(value: Any) -> str:
    is_long = type(value) is list and len(value) > _MOST_WORKS
    return f": expected at most {_MOST_WORKS:,} entries, found {len(value):,}" if is_long else _IDS(value)


_MOST_WORKS: Final = 10_000  # one for each scorer; the catalog keeps them
_COUNTED: Final = {"evaluations": _map(_COUNTS)}
_WORKED: Final[dict[str, dict[str, Check]]] = {
    "runs": {"pinned": _flag, "fresh": _flag},
    "evaluations": {"pinned": _flag, "fresh": _flag},
    "matches": {"pinned": _flag, "fresh": _flag},
    "recordings": {"pinned": _flag},
}
_AMOUNTS: Final = _map(_number)
_USAGE: Final = _object(
    {"cost": _AMOUNTS}, dict.fromkeys(("rows", "requests", "input_tokens", "output_tokens"), _count)
)
_USED: Final[dict[str, dict[str, Check]]] = {
    "runs": {"usage": _USAGE, "spent": _AMOUNTS},
    "evaluations": {"usage": _map(_USAGE), "spent": _map(_AMOUNTS)},
    "matches": {"usage": _USAGE, "spent": _map(_AMOUNTS)},
}
_TABLES: Final = _map(_object({"file": _text, "digest": _id, "rows": _count, "bytes": _count}))
_OPTIONAL: Final = {"work": _works, "observed": _flag, "app": _APP, "sealed": _time}


def _shape(kind: str, *, sealed: bool) -> Check:
    head = {"attempt": _count, "created": _time, "name": _or_null(_short_text)}
    required = head | {"spec": _SPECS[kind], "provenance": _PROVENANCES[kind]} | _WORKED.get(kind, {})
    if sealed:
        required |= {"digest": _short_text, "counts": _COUNTED.get(kind, _COUNTS), "tables": _TABLES}
    return _object(required, _OPTIONAL | _USED.get(kind, {}))


_OPEN: Final = {kind: _shape(kind, sealed=False) for kind in _SPECS}
_SEALED: Final = {kind: _shape(kind, sealed=True) for kind in _SPECS}


# What must match


def _match_nothing(manifest: Mapping[str, Any], sealed: bool) -> str:
    return ""


def _match_run(manifest: Mapping[str, Any], sealed: bool) -> str:
    examples, replications = manifest["spec"]["examples"], manifest["spec"]["replications"]
    if replications < 1 or examples * replications > MOST_SLOTS:
        return f".spec.replications: expected 1 to {MOST_SLOTS:,} calls, found {examples} × {replications}"
    if sealed and (rows := sum(manifest["counts"].values())) > MOST_SLOTS:
        return f".counts: expected at most {MOST_SLOTS:,} rows, found {rows}"
    return ""


def _match_evaluation(manifest: Mapping[str, Any], sealed: bool) -> str:
    scorers = manifest["spec"]["scorers"]
    if sealed and (missing := scorers.keys() - manifest["counts"].keys()):
        return f".counts.{_describe_key(min(missing))}: is missing"
    return ""


def _match_evaluations(manifest: Mapping[str, Any], sealed: bool) -> str:
    spec, provenance = manifest["spec"], manifest["provenance"]
    n_evaluations = len(spec["evaluations"])
    lists = chain(
        ((f".spec.{name}", spec[name]) for name in ("runs", "datasets", "labels")),
        ((f".provenance.{name}", provenance[name]) for name in ("evaluations", "labels") if name in provenance),
    )
    for place, each in lists:
        if len(each) != n_evaluations:
            return f"{place}: expected {n_evaluations} entries, one for each evaluation, found {len(each)}"
    return ""


def _match_systems(manifest: Mapping[str, Any], sealed: bool) -> str:
    spec, made_from = manifest["spec"], manifest["provenance"]["runs"]
    n_runs = len(spec["systems"]) if "runs" in spec else 0
    for place, each in ((".spec.runs", spec.get("runs", [])), (".provenance.runs", made_from)):
        if len(each) != n_runs:
            return f"{place}: expected {n_runs} entries, one for each system, found {len(each)}"
    return ""


def _match_ratings(manifest: Mapping[str, Any], sealed: bool) -> str:
    n_matches, n_made_from = len(manifest["spec"]["matches"]), len(manifest["provenance"]["matches"])
    if n_matches != n_made_from:
        return f".provenance.matches: expected {n_matches} entries, one for each digest, found {n_made_from}"
    return ""


def _match_recording(manifest: Mapping[str, Any], sealed: bool) -> str:
    missing = manifest["spec"]["feedbacks"].keys() - manifest["provenance"]["columns"].keys()
    return f".provenance.columns.{_describe_key(min(missing))}: is missing" if missing else ""


_MATCHES: Final[dict[str, Callable[[Mapping[str, Any], bool], str]]] = {
    "datasets": _match_nothing,
    "runs": _match_run,
    "evaluations": _match_evaluation,
    "aggregations": _match_evaluations,
    "comparisons": _match_evaluations,
    "matches": _match_systems,
    "ratings": _match_ratings,
    "cards": _match_nothing,
    "recordings": _match_recording,
}
