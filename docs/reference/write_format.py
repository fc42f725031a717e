"""Write what is frozen of the store: tables.md, the columns, and manifest.schema.json, the shape of manifests."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from evaluand.data.schema.named.tables import EXAMPLES
from evaluand.store import tables
from evaluand.store.checks import MOST_NAME
from evaluand.store.kinds import kind_names
from evaluand.store.store import FORMAT

HERE = Path(__file__).parent

# Table → its schema in store/tables.py, by kind of artifact. `NAME` stands for that of a scorer.
TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "datasets": {"examples": "EXAMPLES"},
    "runs": {"responses": "RESPONSES", "spans": "SPANS", "inputs": "INPUTS"},
    "evaluations": {"scores/NAME": "SCORES", "inputs/NAME": "INPUTS"},
    "aggregations": {
        "metrics": "METRICS",
        "disparities": "DISPARITIES",
        "worst_groups": "WORST_GROUPS",
        "curves": "CURVES",
    },
    "comparisons": {"pairs": "PAIRS", "ranking": "RANKING", "flips": "FLIPS", "left_out": "LEFT_OUT"},
    "matches": {"matches": "MATCHES", "spans": "JUDGEMENT_SPANS", "inputs": "INPUTS"},
    "ratings": {
        "ratings": "RATINGS",
        "win_rates": "WIN_RATES",
        "differences": "DIFFERENCES",
        "parameters": "PARAMETERS",
        "bias": "BIAS",
    },
    "cards": {
        "measures": "MEASURES",
        "confusion": "CONFUSION",
        "calibration": "CALIBRATION",
        "misses": "MISSES",
    },
    "recordings": {"damaged_lines": "DAMAGED_LINES"},
}


def schema_of(name: str) -> pa.Schema:
    """The Arrow schema with a name in `TABLES`."""
    others = {"EXAMPLES": EXAMPLES, "SCORES": tables.scores_schema({})}
    return others[name] if name in others else getattr(tables, name)


# The tables


def tables_page() -> str:
    """The page on the columns of all tables."""
    explained = _explanations()
    lines = ["# Tables of the store", "", "Written by `write_format.py` from `src/evaluand/store/tables.py`. See"]
    lines += ["[the format](../format.md) for where they are. A column of type `json` is text: canonical JSON."]
    shown: dict[str, str] = {}
    for kind, named in TABLES.items():
        lines += ["", f"## {kind}"]
        for table, name in named.items():
            lines += ["", f"### {kind}: `{table}`", ""]
            if name in shown:
                lines.append(f"The columns of {shown[name]}.")
                continue
            shown[name] = f"`{table}` of {kind}"
            lines += [*_columns(schema_of(name))]
            if text := explained.get(name) or _FURTHER.get(name):
                lines += ["", text]
    return "\n".join(lines) + "\n"


_FURTHER: Final = {
    "EXAMPLES": "The columns of the data follow; `_digest_` identifies an example by its content.",
    "SCORES": "The columns of the scorer follow. `digest` is that of what was graded, `usage` what grading has used.",
}


def _columns(schema: pa.Schema) -> Iterator[str]:
    yield from ("| column | type | may be null |", "|---|---|---|")
    for field in schema:
        kind = "json" if tables.is_json(field) else str(field.type).replace("|", "\\|")
        yield f"| `{field.name}` | `{kind}` | {'yes' if field.nullable else 'no'} |"


def _explanations() -> dict[str, str]:
    """The text below each schema."""
    body = ast.parse(Path(tables.__file__).read_text(encoding="utf-8")).body
    return {
        ast.unparse(before.target): " ".join(str(after.value.value).split())
        for before, after in pairwise(body)
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    }


# The manifests


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema of sealed manifests: one shape for each kind, as `kind.py` of its room checks it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Manifests of evaluand, format {FORMAT}",
        "oneOf": [_manifest(kind) for kind in kind_names()],
        "$defs": {
            "id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "count": {"type": "integer", "minimum": 0},
            "time": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d"},
            "table": _object({"file": _TEXT, "digest": _ID, "rows": _COUNT, "bytes": _COUNT}),
            "measure": _object({"scorer": _TEXT, "metric": _METRIC, "by": _list(_NAMES)}),
        },
    }


def _object(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "required": [*required], "properties": {**required, **(optional or {})}}


def _list(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _map(value: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT: Final = {"type": "string"}
_SHORT: Final = {"type": "string", "maxLength": MOST_NAME}
_FLAG: Final = {"type": "boolean"}
_OBJECT: Final = {"type": "object"}
_SCALAR: Final = {"type": ["string", "number", "boolean"]}
_ID: Final = {"$ref": "#/$defs/id"}
_COUNT: Final = {"$ref": "#/$defs/count"}
_TIME: Final = {"$ref": "#/$defs/time"}
_TEXTS, _IDS, _COUNTS = _list(_TEXT), _list(_ID), _map(_COUNT)
_NAMES: Final = {"anyOf": [_TEXT, _TEXTS]}
_METRIC: Final = _object({"kind": _TEXT, "parameters": _OBJECT})
_ROLES: Final = _object(
    {"input": _NAMES},
    {
        "attributes": _TEXTS,
        "cluster": _or_null(_TEXT),
        "expected": _or_null({"anyOf": [_TEXT, _map(_TEXT)]}),
        "id": _or_null(_TEXT),
        "metadata": _TEXTS,
        "weight": _or_null(_TEXT),
    },
) | {"additionalProperties": False}
_COMPARED: Final = dict.fromkeys(("evaluations", "runs", "datasets", "labels"), _TEXTS) | {
    "measures": _list({"$ref": "#/$defs/measure"})
}

_SPECS: Final[Mapping[str, Any]] = {
    "datasets": _object({"digest": _TEXT, "roles": _ROLES}),
    "runs": _object(
        {"task": _OBJECT, "dataset": _ID, "examples": _COUNT, "replications": _COUNT, "seed": {"type": "integer"}}
    ),
    "evaluations": _object({"run": _TEXT, "dataset": _ID, "scorers": _map(_OBJECT)}, {"attempt": _ID}),
    "aggregations": _object(_COMPARED, {"tradeoffs": _list(_OBJECT)}),
    "comparisons": _object(
        _COMPARED | {"confidence": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "flips": _COUNT}
    ),
    "matches": _object(
        {"systems": _TEXTS},
        {"runs": _TEXTS, "dataset": _ID, "judge": _OBJECT, "schedule": _OBJECT, "orders": _TEXT, "limit": _COUNT}
        | {"seed": {"type": "integer"}, "battles": _TEXT, "file": _OBJECT},
    ),
    "ratings": _object({"matches": _TEXTS, "systems": _TEXTS, "confidence": {"type": "number"}, "method": _METRIC}),
    "cards": _object(
        {
            "judge": _object({"name": _TEXT, "digest": _ID, "spec": _OBJECT}),
            "labels": _ID,
            "judgements": _ID,
            "items": _COUNT,
            "confidence": {"type": "number"},
            "options": _OBJECT,
        }
    ),
    "recordings": _object({"app": _OBJECT, "attempts": _COUNT, "feedbacks": _map(_OBJECT), "mode": _TEXT}),
}

_FACTS: Final = {
    **{name: _or_null(_TEXT) for name in ("evaluand", "python", "platform", "source")},
    "packages": _or_null(_map(_or_null(_TEXT))),
    "git": _or_null(_object({}, {"commit": _or_null(_TEXT), "changed": _or_null(_FLAG)})),
    "origin": _or_null(_OBJECT),
    "parts": _or_null(_OBJECT),
    "policy": _or_null(_map(_or_null(_SCALAR))),
    "unpinned": _or_null(_TEXTS),
}
_MADE_FROM: Final[Mapping[str, Any]] = {
    "evaluations": {"run": _ID},
    "aggregations": {"evaluations": _IDS},
    "comparisons": {"evaluations": _IDS, "labels": _TEXTS},
    "matches": {"runs": _IDS},
    "ratings": {"matches": _IDS},
    "cards": {"made_from": _list(_object({"kind": _TEXT, "id": _ID}))},
    "recordings": {"columns": _map(_map(_TEXT)), "forms": _OBJECT, "timeout": _or_null({"type": "number"})},
}
_WORKED: Final[Mapping[str, Any]] = {
    **{kind: {"pinned": _FLAG, "fresh": _FLAG} for kind in ("runs", "evaluations", "matches")},
    "recordings": {"pinned": _FLAG},
}


def _manifest(kind: str) -> dict[str, Any]:
    head = {
        "format": {"type": "integer", "minimum": 1, "maximum": FORMAT},
        "kind": {"const": kind},
        "id": _ID,
        "seal": _ID,
        "name": _or_null(_SHORT),
        "attempt": _COUNT,
        "created": _TIME,
        "digest": _SHORT,
        "spec": _SPECS[kind],
        "provenance": _object(_MADE_FROM.get(kind, {}), _FACTS),
        "counts": _map(_COUNTS) if kind == "evaluations" else _COUNTS,
        "tables": _map({"$ref": "#/$defs/table"}),
    }
    optional = {"sealed": _TIME, "work": _IDS, "observed": _FLAG, "app": _OBJECT}
    return {"title": kind} | _object(head | _WORKED.get(kind, {}), optional)


def write() -> None:
    """Writes both files."""
    (HERE / "tables.md").write_text(tables_page(), encoding="utf-8")
    (HERE / "manifest.schema.json").write_text(json.dumps(manifest_schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
