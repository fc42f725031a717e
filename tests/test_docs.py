"""What the documents show is so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from evaluand.experiment import ExperimentSpec, json_schema

ROOT = Path(__file__).parents[1]
HOWTO = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "howto").glob("*.md"))


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL)


def test_the_ten_lines_of_the_readme_print_what_it_says() -> None:
    [code] = blocks("README.md", "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"prints `{done.stdout.strip()}`" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("document", HOWTO)
def test_the_code_of_a_howto_runs_and_prints_what_it_says(document: str) -> None:
    for code in blocks(document, "python"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            assert f"    {line}\n" in (ROOT / document).read_text()


def test_the_experiment_of_the_readme_is_one() -> None:
    [text] = blocks("README.md", "yaml")
    assert list(ExperimentSpec.model_validate(yaml.safe_load(text)).tasks) == ["bot", "last_month"]


def test_the_published_schema_is_the_present_one() -> None:
    published = json.loads((ROOT / "docs" / "reference" / "experiment.schema.json").read_text())
    assert published == json_schema(), "write it anew: python docs/reference/write_schema.py"


@pytest.mark.parametrize("example", ["classifiers", "gsm8k"])
def test_the_published_schema_takes_the_examples(example: str) -> None:
    experiment = yaml.safe_load((ROOT / "examples" / example / "experiment.yaml").read_text())
    jsonschema.Draft202012Validator(json_schema()).validate(experiment)


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": {}},
        {"scorers": {"answer": {"kind": "exact_mach"}}},
        {"scorers": {"answer": {"kind": "exact_match", "normalize": ["case"]}}},
        {"metrics": [{"kind": "accuracy", "missing": "ignore"}]},
        {"run": {"concurrency": 0}},
    ],
)
def test_the_published_schema_refuses_what_cannot_run(change: dict[str, object]) -> None:
    experiment = yaml.safe_load((ROOT / "examples" / "gsm8k" / "experiment.yaml").read_text()) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema()).validate(experiment)


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/guide.md", *HOWTO])
def test_links_lead_somewhere(document: str) -> None:
    place = ROOT / document
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", place.read_text()):
        if "://" not in link:
            assert (place.parent / link).exists(), link
