"""What the documents show is so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import jsonschema
import pytest
import yaml
from support.places import ROOT_FOLDER

from evaluand.core import registry
from evaluand.experiment import ExperimentSpec, json_schema


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT_FOLDER / document).read_text(), flags=re.DOTALL)


def test_the_code_of_the_readme_prints_what_it_says() -> None:
    for code in blocks("README.md", "python"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert f"prints `{done.stdout.strip()}`" in (ROOT_FOLDER / "README.md").read_text()


def test_the_how_to_on_comparisons_names_every_metric_that_can_be_compared() -> None:
    told = (ROOT_FOLDER / "docs/howto/compare.md").read_text().partition("These are: ")[2].partition(". ")[0]
    averaging = [name for name in registry.names("metrics") if registry.find("metrics", name).averages]
    assert re.findall(r"`(\w+)`", told) == averaging


@pytest.mark.parametrize("document", ["docs/howto/compare.md", "docs/howto/gate.md"])
def test_the_code_of_a_howto_runs_and_prints_what_it_says(document: str) -> None:
    for code in blocks(document, "python"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            assert f"    {line}\n" in (ROOT_FOLDER / document).read_text()


PRINTING = [
    *(
        "adapters",
        "d3m",
        "detection",
        "dyff",
        "estimator",
        "fairness",
        "feedback",
        "labels",
        "schemas",
        "service",
        "tagging",
    ),
    *("lineage", "people", "pharia", "sample_tasks", "texts", "top_k", "tracing"),
    *("tradeoffs", "trulens"),
]


@pytest.mark.parametrize(
    "document",
    [f"docs/howto/{name}.md" for name in PRINTING],
)
def test_a_how_to_prints_what_it_says(document: str) -> None:
    code, told = "\n".join(blocks(document, "python")), "".join(blocks(document, "text"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.fullmatch(re.escape(told).replace("…", ".*"), done.stdout)


def test_the_command_of_the_how_to_shows_what_it_says(tmp_path: Path) -> None:
    document = "docs/howto/adapters.md"
    for name, language in (("pipeline.yaml", "yaml"), ("answers.jsonl", "json")):
        (tmp_path / name).write_text("".join(blocks(document, language)))
    [command] = blocks(document, "sh")
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    shown = "".join(f"    {line}\n" if line else "\n" for line in done.stdout.splitlines())
    assert shown in (ROOT_FOLDER / document).read_text()


def test_the_how_to_on_predictions_runs_from_beginning_to_end(tmp_path: Path) -> None:
    document = "docs/howto/predictions.md"
    for name, text in zip(("truth.csv", "mine.csv"), blocks(document, "csv"), strict=True):
        (tmp_path / name).write_text(text)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    commands, code = "".join(blocks(document, "sh")), blocks(document, "python")[0]
    done = subprocess.run(["bash", "-euc", commands], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    told = (ROOT_FOLDER / document).read_text()
    [run] = re.findall(r"^run (\w{4})\w* (\(mine\) over 3 examples: 3 completed)$", done.stdout, flags=re.MULTILINE)
    assert f"    run {run[0]}… {run[1]}\n" in told
    table = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert table.stdout.split() == ["mean", "count", "truth", "negative", "0.75", "4", "positive", "0.75", "4"]


def test_the_experiment_of_the_how_to_on_trade_offs_has_its_front_in_report_and_show(tmp_path: Path) -> None:
    document = "docs/howto/tradeoffs.md"
    for name, language in (("experiment.yaml", "yaml"), ("questions.jsonl", "json")):
        (tmp_path / name).write_text("".join(blocks(document, language)))
    (tmp_path / "bots.py").write_text(blocks(document, "python")[-1])
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["COLUMNS"] = "160"
    [command] = blocks(document, "sh")
    done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    *_, told = done.stdout.partition("trade-off: short, and helpful to all\n")
    cells = [re.split(r"  +", line.strip()) for line in told.strip().splitlines()]
    assert [(cells[row][0], cells[row][2], cells[row + 1][1]) for row in (1, 3)] == [
        ("brief", "1", "1"),
        ("chatty", "0.0909", "0"),
    ]
    assert [cells[row][-1] for row in (1, 3)] == ["yes", "yes"]
    page = (tmp_path / "bots.html").read_text()
    assert '<h2 id="tradeoffs-title">Trade-offs</h2>' in page
    assert page.count("mean(helpful) difference by language") > 3


def test_the_scorer_of_the_contributors_guide_does_what_it_says(tmp_path: Path) -> None:
    [code] = blocks("CONTRIBUTING.md", "python")
    (tmp_path / "same_length.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "doctest", "-v", "same_length.py"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_the_experiment_of_the_how_to_on_views_runs(tmp_path: Path) -> None:
    document = "docs/howto/views.md"
    for name, language in (("experiment.yaml", "yaml"), ("questions.jsonl", "json")):
        (tmp_path / name).write_text("".join(blocks(document, language)))
    (tmp_path / "app.py").write_text(blocks(document, "python")[0])
    command = [sys.executable, "-m", "evaluand.cli", "run", "experiment.yaml", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert [(row["value"], row["n"]) for row in json.loads(done.stdout)["metrics"]] == [(1.0, 2), (1.0, 2)]


def test_the_example_of_estimators_runs() -> None:
    example = ROOT_FOLDER / "examples" / "estimator.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True)
    logistic, forest, again = done.stdout.splitlines()
    assert re.match(r"logistic regression: 0\.9[78]\d of 1707 .* 1,707 of 1,707 done now", logistic)
    assert re.match(r"random forest: 0\.9[4-7]\d of 1707 .* 1,707 of 1,707 done now", forest)
    assert again.startswith("again: 0 of 1,707 done now, 1,707 kept")


def test_the_example_of_trade_offs_draws_its_fronts_with_bands_and_tells_a_pick(tmp_path: Path) -> None:
    example = ROOT_FOLDER / "examples" / "tradeoffs" / "voters.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert re.match(r"to choose: \d{3} points of 3 models, \d+ on the front\n", done.stdout)
    assert re.search(r"\nhypervolume 0\.8\d\d, on test 0\.8\d\d \(0\.\d+ to 0\.\d+\)\n", done.stdout)
    banded = (
        r"\n  nearest neighbours   accuracy 0\.8\d\d \(0\.\d+ to 0\.\d+\), odds apart 0\.\d+ \(0\.\d+ to 0\.\d+\)\n"
    )
    assert re.search(banded, done.stdout)
    assert re.search(r"\n  accuracy: 0\.8\d\d where chosen, 0\.8\d\d \(0\.\d+ to 0\.\d+\) on test\n", done.stdout)
    assert {path.name for path in tmp_path.iterdir()} == {"front.html", "front.svg", "radar.svg", "rates.svg"}
    page = (tmp_path / "front.html").read_text()
    assert page.count('<path class="area ') == 2
    for told in ("95 % of such bands hold", "Rates of groups: ", "recall by age (wanted alike)", "Radar of indicators"):
        assert told in page


def test_the_program_of_the_how_to_answers_as_it_says(tmp_path: Path) -> None:
    program, code = blocks("docs/howto/program.md", "python")
    (tmp_path / "bot.py").write_text(program)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert f"prints `{done.stdout.strip()}`" in (ROOT_FOLDER / "docs/howto/program.md").read_text()


def test_what_the_readme_makes_is_a_target_that_help_tells() -> None:
    told = set(re.findall(r"^([a-z]+):.*## ", (ROOT_FOLDER / "Makefile").read_text(), re.MULTILINE))
    assert {"install", "demo", "test"} <= set(
        re.findall(r"(?:    |`)make ([a-z]+)", (ROOT_FOLDER / "README.md").read_text())
    )
    assert {"install", "demo", "test"} <= told


def test_the_demo_prints_what_the_readme_says(tmp_path: Path) -> None:
    """Line breaks apart, which go by the width of the terminal."""
    shutil.copytree(ROOT_FOLDER / "examples" / "classifiers", tmp_path / "examples" / "classifiers")
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    recipe = (ROOT_FOLDER / "Makefile").read_text().split("\ndemo: ")[1].split("\n\n")[0].splitlines()[1:]
    commands = "\n".join(recipe).replace("\t@", "").replace("$(BIN)/", "")
    done = subprocess.run(["bash", "-euc", commands], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stdout.split())
    for told in blocks("README.md", "text"):
        assert re.search(re.escape(" ".join(told.split())).replace("…", ".*"), printed), printed


def test_the_experiment_of_the_readme_is_one() -> None:
    [text] = blocks("README.md", "yaml")
    assert list(ExperimentSpec.model_validate(yaml.safe_load(text)).tasks) == ["bot", "last_month"]


def test_the_published_schema_is_the_present_one() -> None:
    published = json.loads((ROOT_FOLDER / "docs" / "reference" / "experiment.schema.json").read_text())
    assert published == json_schema(), "write it anew: python docs/reference/write_schema.py"


@pytest.mark.parametrize("example", ["classifiers", "gsm8k", "tagging"])
def test_the_published_schema_takes_the_examples(example: str) -> None:
    experiment = yaml.safe_load((ROOT_FOLDER / "examples" / example / "experiment.yaml").read_text())
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
    experiment = yaml.safe_load((ROOT_FOLDER / "examples" / "gsm8k" / "experiment.yaml").read_text()) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema()).validate(experiment)


def parts_of_the_schema() -> dict[str, set[str]]:
    """Each part of an experiment file, as the guide calls it, with its keys."""
    schema = json_schema()
    specs = {"dataset": "DatasetSpec", "fairness": "FairnessSpec", "tradeoffs": "TradeoffSpec", "run": "RunSpec"}
    parts = {part: schema["$defs"][name] for part, name in specs.items()}
    for group, code in (("tasks", "TaskCodeSpec"), ("scorers", "ScorerCodeSpec")):
        parts[f"{group}, code"] = schema["$defs"][code]
        kinds = [one for one in schema["properties"][group]["additionalProperties"]["anyOf"] if "properties" in one]
        parts |= {f"{group}, kind: {kind['title']}": kind for kind in kinds}
    common = {"kind", "view"}  # what every kind has is told where code is
    keys = {part: {*held["properties"]} - (common if "kind:" in part else set()) for part, held in parts.items()}
    metrics = [one for one in schema["properties"]["metrics"]["items"]["anyOf"] if "properties" in one]
    return keys | {"metrics": {key for metric in metrics for key in metric["properties"]}}


@pytest.mark.parametrize("kind", registry.names("metrics"))
def test_concepts_name_the_interval_of_every_metric(kind: str) -> None:
    made = registry.find("metrics", kind)
    needed = {"k": 1, "q": 0.5}
    metric = made(**{f.name: needed[f.name] for f in fields(made) if f.init and f.name in needed})
    table = (ROOT_FOLDER / "docs" / "concepts.md").read_text().split("| metric | interval |\n")[1].split("\n\n")[0]
    rows = dict(line.strip("| ").split(" | ") for line in table.splitlines()[1:])
    named = [how for kinds, how in rows.items() if kind in re.findall(r"\w+", kinds)]  # of labels, and of things
    told = "; ".join(named) or "the jackknife's variance"
    words = {
        "wilson": "Wilson",
        "student": "Student|roots",
        "woodruff": "Woodruff",
        "jackknife": "jackknife",
        "influence": "influence",
        None: "none: ",
    }
    assert re.search(words[metric.interval], told)


def test_the_guide_names_every_key_of_the_experiment_file_and_no_other() -> None:
    section = (ROOT_FOLDER / "docs" / "guide.md").read_text().split("## The experiment file")[1].split("\n## ")[0]
    told: dict[str, set[str]] = {}
    part = ""
    for first in re.findall(r"^\| (.*?) \|", section, flags=re.MULTILINE):
        if first.startswith("**"):
            part = first.replace("*", "").replace("`", "")
        told.setdefault(part, set()).update(() if first.startswith("**") else re.findall(r"`(\w+)`", first))
    assert told.pop("") == {"name"}
    assert told == parts_of_the_schema()


def test_the_guide_tells_what_metrics_do_about_missing_rows_and_several_responses() -> None:
    [told] = re.findall(
        r"^\| `missing`, `reduce` \| (.*?) \|", (ROOT_FOLDER / "docs/guide.md").read_text(), flags=re.MULTILINE
    )
    usual, *special = told.split("; ")
    own = {name: others for kinds, others in (part.split(": ") for part in special) for name in kinds.split(", ")}
    for name in registry.names("metrics"):
        defaults = {field.name: field.default for field in fields(registry.find("metrics", name))}
        assert f"{defaults['missing']}, {defaults['reduce']}" == own.get(name, usual), name


def test_the_tutorial_runs_from_beginning_to_end(tmp_path: Path) -> None:
    """A block that begins with the name of a file is that file; the others are run, one after the other."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    told = []
    for language, block in re.findall(
        r"^```(\w+)\n(.*?)^```", (ROOT_FOLDER / "docs/tutorial.md").read_text(), re.M | re.S
    ):
        if name := re.match(r"# (\S+\.\w+)\n", block):
            (tmp_path / name[1]).write_text(block)
            continue
        command = [sys.executable, "-c", block] if language == "python" else ["bash", "-euc", block]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
        assert done.returncode == 0, (block, done.stdout, done.stderr)
        told.append(done.stdout)
    assert "90 done now, 30 reused" in told[2]
    assert "bot.py:5 in answer" in told[3]
    assert "careful is better" in told[4]
    assert (tmp_path / "arithmetic.html").is_file()
    assert "bot.answer changed" in told[5]


ARRAYS = """
import numpy as np
from evaluand import DirectoryStore, Mean, evaluate
truth, predictions = [1, 2, 3], [1, 2, 2]
old, new = predictions, truth
"""  # what the guide's code on arrays takes for granted


def test_the_guide_shows_what_runs(tmp_path: Path) -> None:
    """Its Python as it stands; its YAML as one experiment file, with what that names."""
    guide = "docs/guide.md"
    app, code, *arrays = blocks(guide, "python")
    rows = [{"question": q, "answer": "4", "topic": "sums", "language": "en", "id": q} for q in ("2 + 2", "two + two")]
    outputs = [{"question_id": row["id"], "choices": [{"text": "5"}]} for row in rows]
    for name, lines in (("questions.jsonl", rows), ("outputs.jsonl", outputs)):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "app.py").write_text(f"{app}\n\ndef polite(output):\n    return 0.5\n")
    (tmp_path / "bot.py").write_text(blocks("docs/howto/program.md", "python")[0].replace(".upper()", ""))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.startswith("2 of 2 done now {'completed': 2}\n"), done.stderr
    done = subprocess.run([sys.executable, "-c", "\n".join([ARRAYS, *arrays])], stderr=-1, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    dataset, tasks, metrics = blocks(guide, "yaml")
    dataset = dataset.replace("[topic]", "[topic, language], id: id")
    tasks = tasks.replace("[python,", f"[{sys.executable},")
    scorers = "scorers: {right: exact_match, polite: app.py:polite}\n"
    (tmp_path / "e.yaml").write_text(f"name: support\n{dataset}{tasks}{scorers}{metrics}")
    command = [sys.executable, "-m", "evaluand.cli", "run", "e.yaml", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    values = {(row["task"], row["metric"]): row["value"] for row in json.loads(done.stdout)["metrics"] if not row["by"]}
    assert values == {
        **{(task, "accuracy"): value for task, value in (("mine", 1), ("theirs", 0), ("bot", 0))},
        **{(task, "mean"): 0.5 for task in ("mine", "theirs", "bot")},
    }
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command, code in zip("".join(blocks(guide, "sh")).splitlines(), (0, 3), strict=True):  # two rows show nothing
        done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == code, done.stderr


DOCUMENTS = sorted(
    str(path.relative_to(ROOT_FOLDER)) for pattern in ("*.md", "docs/**/*.md") for path in ROOT_FOLDER.glob(pattern)
)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    place = ROOT_FOLDER / document
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", place.read_text()):
        if "://" not in link:
            assert (place.parent / link).exists(), link
