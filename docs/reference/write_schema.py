"""Write experiment.schema.json, the JSON Schema of experiment files."""

import json
from pathlib import Path

from evaluand.experiment import json_schema

text = json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"
Path(__file__).with_name("experiment.schema.json").write_text(text)
