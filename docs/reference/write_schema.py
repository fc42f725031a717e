"""Write experiment.schema.json and suite.schema.json, the JSON Schemas of experiment files and of suites."""

import json
from pathlib import Path

from evaluand.experiment import json_schema, suite_json_schema

for name, schema in (("experiment", json_schema()), ("suite", suite_json_schema())):
    text = json.dumps(schema, indent=2, sort_keys=True) + "\n"
    Path(__file__).with_name(f"{name}.schema.json").write_text(text)
