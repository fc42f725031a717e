"""The fields of an experiment file as a JSON Schema, with the parameters of every installed kind."""

from typing import Any, get_args

from evaluand.core import registry
from evaluand.engine.engines.choice import EngineKind
from evaluand.experiment.spec import GRADED_BY, NO_RATING, ExperimentSpec
from evaluand.experiment.task_matrix import allow_several
from evaluand.matches.ratings.method import Kind as RatingKind, RatingMethod
from evaluand.metrics.names import metric_names
from evaluand.run.types import adapter_of


def json_schema() -> dict[str, Any]:
    """The JSON Schema of experiment files, with the parameters of every installed kind."""
    schema = ExperimentSpec.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "evaluand experiment"
    for group, holder in (("tasks", "TaskKindSpec"), ("scorers", "ScorerKindSpec"), ("metrics", "MetricSpec")):
        alternatives = [_kind_schema(group, name, schema["$defs"]) for name in registry.names(group)]
        base = {name: {"$ref": f"#/$defs/{holder}/properties/{name}"} for name in schema["$defs"][holder]["properties"]}
        for alternative in alternatives:
            alternative["properties"] = {**base, **alternative["properties"]}
        known = [one.name for one in metric_names()] if group == "metrics" else registry.names(group)
        by_name = {"enum": known, "description": "a kind without parameters"}
        place = schema["properties"][group]
        if group == "metrics":
            code = {"$ref": "#/$defs/MetricCodeSpec"}
            by_place = {"type": "string", "pattern": ":", "description": "file.py:name"}
            place["items"] = {"anyOf": [code, *alternatives, by_name, by_place]}
        else:
            code = {"$ref": f"#/$defs/{'TaskCodeSpec' if group == 'tasks' else 'ScorerCodeSpec'}"}
            by_place = {"type": "string", "pattern": ":", "description": "file.py:name"}
            place["additionalProperties"] = {"anyOf": [code, *alternatives, by_name, by_place]}
        if group == "tasks":
            for alternative in alternatives:
                allow_several(alternative)
    _write_matches(schema)
    schema["if"], schema["else"] = {"required": ["matches"]}, {"required": ["scorers", "metrics"]}
    for group in ("scorers", "metrics"):
        del schema["properties"][group]["default"]
    schema["dependentRequired"] = {"scorers": ["metrics"], "metrics": ["scorers"]}
    _allow_short_forms(schema["properties"])
    for holder in ("JudgeKindSpec", "ScheduleSpec", "RatingSpec"):
        del schema["$defs"][holder]
    return schema


def _write_matches(schema: dict[str, Any]) -> None:
    """Matches with the parameters of every kind of judge and schedule."""
    definitions = schema["$defs"]
    properties = definitions["MatchesSpec"]["properties"]
    for key, group, code in (("judge", "comparison_scorers", "JudgeCodeSpec"), ("schedule", "schedules", None)):
        names = registry.names(group)
        kinds = [_kind_schema(group, name, definitions) for name in names]
        for kind in kinds:
            if GRADED_BY in kind["properties"]:
                kind["properties"][GRADED_BY] = {"$ref": "#/properties/scorers/anyOf/0/additionalProperties"}
        short = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False}
        short |= {"properties": {name: {} for name in names}, "description": "kind: its parameters"}
        word = {"enum": names, "description": "a kind without parameters"}
        forms: list[Any] = [*kinds, word, short]
        if code is not None:
            place = {"type": "string", "pattern": ":", "description": "file.py:name"}
            forms = [{"$ref": f"#/$defs/{code}"}, *forms, place]
        properties[key] = {"anyOf": forms}
    properties["schedule"]["default"] = "all_pairs"
    properties["rating"] = _rating_schema(definitions["RatingSpec"]["properties"]["confidence"])
    one = schema["properties"]["matches"]["items"]
    schema["properties"]["matches"] = {"anyOf": [schema["properties"]["matches"], one, {"type": "string"}]}


def _rating_schema(confidence: dict[str, Any]) -> dict[str, Any]:
    """How systems are rated: a method with its parameters, or its name alone."""
    made = adapter_of(RatingMethod).json_schema()
    kind = {"enum": [*get_args(RatingKind)], "default": made["properties"]["kind"]["default"]}
    made["properties"] |= {"kind": kind, "confidence": confidence}
    made["additionalProperties"] = False
    return {"anyOf": [made, {"enum": [*get_args(RatingKind), NO_RATING]}], "default": kind["default"]}


def _allow_short_forms(parts: dict[str, Any]) -> None:
    """Parts may be one text, the engine its name, and tasks and scorers a list of texts."""
    text: dict[str, Any] = {"type": "string", "minLength": 1}
    for name in ("dataset", "metrics", "gates", "budget"):
        parts[name] = {"anyOf": [parts[name], text]}
    parts["engine"] = {"anyOf": [parts["engine"], {"enum": [*get_args(EngineKind)]}]}
    parts["metrics"]["anyOf"].append({"$ref": "#/properties/metrics/anyOf/0/items"})
    for name in ("tasks", "scorers"):
        parts[name] = {"anyOf": [parts[name], text, {"type": "array", "items": text, "minItems": 1}]}


def _kind_schema(group: str, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    made = adapter_of(registry.find(group, name)).json_schema(ref_template="#/$defs/{model}")
    definitions.update(made.pop("$defs", {}))
    made["properties"] = {"kind": {"const": name}, **made.get("properties", {})}
    made["required"] = ["kind", *made.get("required", [])]
    made["title"] = name
    made["additionalProperties"] = False
    return made
