"""The fields of a suite file as a JSON Schema."""

from typing import Any

from evaluand.experiment.spec_schema import json_schema
from evaluand.experiment.suite_spec import ScoreSpec, SuiteSpec

_OF_PROBLEMS = ("name", "tasks")
"""The keys of an experiment that a problem does not have: they are those of the suite."""


def suite_json_schema() -> dict[str, Any]:
    """The JSON Schema of suite files, with the parameters of every installed kind."""
    experiment, schema = json_schema(), SuiteSpec.model_json_schema()
    parts = experiment["properties"]
    score = {"anyOf": [ScoreSpec.model_json_schema(), {"type": "string", "description": "the name of a metric"}]}
    own = {key: {"$ref": f"#/$defs/experiment/properties/{key}"} for key in parts if key not in _OF_PROBLEMS}
    inline = {"type": "object", "properties": own | {"score": score}, "additionalProperties": False}
    inline["required"] = ["dataset"]
    by_file: dict[str, Any] = {"type": "object", "properties": {"file": {"type": "string"}, "score": score}}
    by_file |= {"required": ["file"], "additionalProperties": False}
    file = {"type": "string", "description": "an experiment file without tasks"}
    properties = schema["properties"]
    properties["problems"]["additionalProperties"] = {"anyOf": [file, by_file, inline]}
    for key in ("tasks", "run"):
        properties[key] = {"$ref": f"#/$defs/experiment/properties/{key}"}
    properties["score"] = score
    schema["$defs"] = experiment.pop("$defs") | {"experiment": {"properties": parts}}
    schema |= {"$schema": experiment["$schema"], "title": "evaluand suite"}
    moved: dict[str, Any] = _moved(schema)
    return moved


def _moved(node: Any) -> Any:
    """References to properties of an experiment, which are below its definition here."""
    if isinstance(node, list):
        return [_moved(each) for each in node]
    if not isinstance(node, dict):
        return node
    moved = {key: _moved(value) for key, value in node.items()}
    if isinstance(at := moved.get("$ref"), str) and at.startswith("#/properties/"):
        moved["$ref"] = f"#/$defs/experiment/{at.removeprefix('#/')}"
    return moved
