"""What the documents show is so: their blocks run, their links lead somewhere, their tables name what the code has."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from support.fresh import run_python
from support.json_schemas import jsonschema
from support.pages import Block, blocks_of, run_commands, run_page
from support.places import ROOT_FOLDER

from evaluand.cli import main
from evaluand.core import registry
from evaluand.experiment import Experiment, ExperimentSpec, json_schema, suite_json_schema

DOCUMENTS = sorted(
    str(path.relative_to(ROOT_FOLDER))
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/*.md")
    for path in ROOT_FOLDER.glob(pattern)
    if "docs/reference/api/" not in str(path)
)
SITE = [document for document in DOCUMENTS if document.startswith("docs/")]

FRAGMENT = "a part of an experiment file; the page has a complete one, or the reference lists its keys"
DRAWING = "a drawing"
OF_DEMO = "output of `make demo`, compared below"
YOURS = "needs a system, data or files of the reader's"
NOT_RUN_AT_ALL = {
    "benchmarks/README.md": "figures of one machine",
    "docs/reference/cli.md": "usage and examples of --help, compared with it in tests/cli",
}
NOT_RUN: dict[str, dict[str, str]] = {
    "CONTRIBUTING.md": {
        '"""Whether an answer is as long as the expected one."""': "a file of evaluand; its doctest is run below",
        '[project.entry-points."evaluand.scorers"]': "a part of pyproject.toml",
    },
    "README.md": {
        "python3 -m venv .venv": "takes seconds, and runs nothing of evaluand",
        "logistic_regression  run         943195798cda  228 done now": OF_DEMO,
        "       values         points  95% interval  p (Shaffer)  won  lost  rows": OF_DEMO,
        "evaluand run experiment.yaml --limit 20    # try it": YOURS,
        "evaluand run capitals.yaml    # four systems, judged; tokens and cost of each row": YOURS,
    },
    "docs/howto/engines.md": {
        "evaluand run experiment.yaml --engine ray --address head:6379 --workers 8": "needs a cluster",
        "pip install 'evaluand[ray]'": "for several machines",
    },
    "docs/howto/shared-stores.md": {
        "pip install 'evaluand[s3,postgres]'": "needs a bucket and a database; see tests/store",
        "evaluand copy .evaluand s3://team/evals               # everything that is finished": "needs a bucket",
    },
    "docs/howto/d3m.md": {
        "python examples/problems/problems.py build": "runs in a clone; see tests/interop",
        "evaluand problem check 185_baseball": "a folder of the benchmark, scored in tests/interop",
        "problem   185_bl_problem_TEST, version 1.0": "output for a folder of the benchmark",
        " " * 40 + "value         interval    n  scored  failed  abstained": "output for a folder of the benchmark",
    },
    "docs/howto/datasets.md": {
        "dataset: {path: questions.jsonl, input: question, expected: answer, attributes: [topic]}": FRAGMENT
    },
    "docs/howto/benchmarks.md": {
        "evaluand init --preset mmlu": YOURS,
        "name: quiz": YOURS,
        "metrics:": FRAGMENT,
        "examples: {path: quiz.jsonl, n: 5, seed: 1, per_row: true}": FRAGMENT,
    },
    "docs/format.md": {
        "SELECT scores.status, count(*), avg(scores.value)": "needs folders of a store; see tests/store"
    },
    "docs/howto/ci.md": {"code=0": YOURS},
    "docs/howto/compare.md": {
        "evaluand compare exp/base exp/mine      # two of them": YOURS,
        "evaluand run experiment.yaml": YOURS,
        "kind         id            created           name           counts": "ids of one machine",
        "evaluand compare 6c63c04ad9f4 support/bot": YOURS,
        "evaluand compare exp/base exp/mine --by topic             # and each group of an attribute": YOURS,
    },
    "docs/howto/detection.md": {
        "scorers:": FRAGMENT,
        'evaluand score --coco val2017.json a.json b.json --by license --gate "coco_ap >= 0.4"': YOURS,
    },
    "docs/howto/fairness.md": {"metrics:": FRAGMENT},
    "docs/howto/gate.md": {
        'evaluand compare support/base support/mine --gate "accuracy not worse than baseline by 0.02" '
        '--gate "accuracy >= 0.85 at 95%" --junit gates.xml': YOURS
    },
    "docs/howto/judge-cards.md": {
        "evaluand judge card labelled.csv --positive good": YOURS,
        "evaluand label export support/mine -o ann.jsonl": "needs a file that people have filled in",
        "evaluand judge tune support/mine --scorer short --scorer strict": YOURS,
        "evaluand judge card Natural.GPT-4.Swap.json --judge GPT-4 \\": "needs files of LLMBar; see tests/evaluation",
    },
    "docs/howto/lineage.md": {
        "evaluand show arithmetic --metric accuracy --group topic=sums --failed   # the rows behind a value": YOURS
    },
    "docs/howto/pharia.md": {
        "        Example                       ExampleOutput, trace, RunOverview": DRAWING,
        "Example, ExampleOutput                ExampleEvaluation, EvaluationOverview      AggregationOverview": DRAWING,
        "run A ─┐": DRAWING,
        "python -m evaluand.interop.pharia.run_evaluation --task my_code.Classify --eval-logic my_code.Same \\": YOURS,
    },
    "docs/howto/people.md": {
        "evaluand label export arithmetic/mine -o ann.jsonl": YOURS,
        "evaluand label import arithmetic/mine ann.jsonl bob.jsonl": "needs files that people have filled in",
        "evaluand label pairs arithmetic/a arithmetic/b --by ann": "asks a person",
        "evaluand label pairs arithmetic/a arithmetic/b --export pairs.csv": YOURS,
    },
    "docs/howto/plan.md": {'evaluand plan "accuracy better than base" --pilot pilot/base pilot/mine': YOURS},
    "docs/howto/prompts.md": {
        "tasks:": FRAGMENT,
        "dataset: {path: animals.parquet, input: [photo, question], expected: animal}": FRAGMENT,
        "response_schema: {type: object, properties: {city: {type: string}}, required: [city]}": FRAGMENT,
    },
    "docs/howto/report.md": {
        "evaluand report classifiers": "needs the store of `make demo`, which runs it",
        "evaluand show RUN --index 17 --json": YOURS,
    },
    "docs/howto/sample_tasks.md": {"name: questions": "needs a model; examples/questions has one"},
    "docs/howto/schemas.md": {'[project.entry-points."evaluand.schemas"]': "a part of your package's pyproject.toml"},
    "docs/howto/suite.md": {"tasks:": FRAGMENT},
    "docs/howto/tagging.md": {"evaluand run examples/tagging/experiment.yaml": "runs in a clone; see tests/experiment"},
    "docs/howto/texts.md": {"metrics:": FRAGMENT},
    "docs/howto/view.md": {
        "pip install 'evaluand[view]'": "starts a server that does not end",
        "evaluand run experiment.yaml --view": YOURS,
        "evaluand view --label": "starts a server that does not end",
        "ssh -L 8000:127.0.0.1:8000 you@host evaluand view --port 8000 --no-browser": YOURS,
        "umask 077; openssl rand -hex 32 > token.txt": "starts a server that does not end",
        "evaluand view --port 8000 --url https://eval.example.org --auth header:X-Forwarded-User": YOURS,
    },
    "docs/howto/views.md": {"view:": FRAGMENT},
    "docs/reference/metrics.md": {"metrics:": FRAGMENT},
    "docs/howto/dyff.md": {"evaluation = dyff.platform.Evaluation.model_validate_json(text)": YOURS},
    "docs/howto/fairical.md": {
        "evaluand tradeoff solve scores/*.json --metric acc --metric eod+race --out solutions": YOURS
    },
    "docs/howto/feedback.md": {"scorers:": FRAGMENT},
    "docs/howto/frameworks.md": {"from evaluand.apps.frameworks.langchain import LangChainApp": YOURS},
    "docs/howto/judges.md": {"scorers:": FRAGMENT, "matches:": FRAGMENT},
    "docs/howto/leaderboard.md": {
        "evaluand leaderboard": "needs recordings in a store",
        "evaluand show places/1 --index 3": "needs recordings in a store",
        "evaluand report places": "needs recordings in a store",
    },
    "docs/howto/metrics.md": {"metrics:": FRAGMENT},
    "docs/reference/experiment-file.md": {"# experiment.yaml": YOURS},
    "docs/howto/record-app.md": {
        "evaluand feedback work shelf/2 --workers 4      # any number of these, on one machine": "starts workers",
        "evaluand resume shelf/2 --give-up": "needs a recording that is open",
    },
    "docs/howto/scorers.md": {"scorers:": FRAGMENT},
    "docs/howto/service.md": {"tasks:": FRAGMENT},
    "docs/howto/tasks.md": {"tasks:": FRAGMENT},
    "docs/howto/tradeoff-experiments.md": {
        "evaluand tradeoff solve --stored classifiers --by tumour --label malignant": YOURS,
        "tasks:": FRAGMENT,
    },
}
"""Page → first line of a block that is not run → why."""

SLOW: set[str] = set()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page
        for page in DOCUMENTS
        if blocks_of(page) and page not in NOT_RUN_AT_ALL
    ],
)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path, [*NOT_RUN.get(page, ())])


def test_blocks_that_are_not_run_are_there() -> None:
    for page, listed in NOT_RUN.items():
        first_lines = [block.first_line for block in blocks_of(page)]
        assert [line for line in listed if line not in first_lines] == [], page


def test_commands_that_are_not_run_have_the_options_that_are_shown() -> None:
    for page, listed in NOT_RUN.items():
        for block in blocks_of(page):
            if block.language == "sh" and block.first_line in listed:
                assert_commands_exist(page, block)


def assert_commands_exist(page: str, block: Block) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["evaluand"]:
            continue
        command, words = main, words[1:]
        while isinstance(command, click.Group):
            command, words = command.get_command(click.Context(command), words[0]), words[1:]
        assert command is not None, f"{page}: {line}"
        known = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
        assert {word for word in words if word.startswith("--")} <= known, f"{page}: {line}"


PUBLIC = {
    "evaluand",
    *(f"evaluand.{room.name}" for room in (ROOT_FOLDER / "src/evaluand").iterdir() if (room / "__init__.py").is_file()),
    *("evaluand.data.adapters", "evaluand.data.schema", "evaluand.testing.assert_gate"),
    *(f"evaluand.interop.{system}" for system in ("d3m", "dyff", "fairical", "pharia", "trulens")),
}
MODULES_OF_PAGES = {
    "CONTRIBUTING.md": {"evaluand.evaluation.scorer.Score", "evaluand.evaluation.scorer.Scorer"},
    "docs/howto/frameworks.md": {
        "evaluand.apps.frameworks.langchain.LangChainApp",
        "evaluand.apps.frameworks.llama_index.LlamaIndexApp",
    },
    "docs/howto/tradeoffs.md": {
        "evaluand.report.matplotlib_figures",
        "evaluand.report.html.tradeoff.write_page",
    },
}
"""Page → what it imports from modules listed in reference/public.md; the contributors' guide shows our file."""


@pytest.mark.parametrize("page", [page for page in DOCUMENTS if any(b.language == "python" for b in blocks_of(page))])
def test_pages_import_public_names_only(page: str) -> None:
    imported = {
        (node.module, alias.name)
        for block in blocks_of(page)
        if block.language == "python"
        for node in ast.walk(ast.parse(block.text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "evaluand"
        for alias in node.names
    }
    hidden = {f"{module}.{name}" for module, name in imported if not is_public(str(module), name)}
    assert hidden == MODULES_OF_PAGES.get(page, set())


def is_public(module: str, name: str) -> bool:
    exported = getattr(importlib.import_module(module), "__all__", ()) if module in PUBLIC else ()
    return name in exported or f"{module}.{name}" in PUBLIC


@pytest.mark.parametrize("document", DOCUMENTS)
def test_code_is_fenced(document: str) -> None:
    """So that it is run, or listed above: no command or import in an indented block."""
    text = re.sub(r"^```.*?^```", "", (ROOT_FOLDER / document).read_text(encoding="utf-8"), flags=re.M | re.S)
    assert re.findall(r"^\n {4}(?:evaluand [a-z]|from evaluand|import ).*", text, flags=re.M) == []


def anchors(document: Path) -> set[str]:
    """The anchors of headings, as GitHub and the site name them."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = (title.lower() for title in re.findall(r"^#+ (.*)$", text, flags=re.M))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_images_lead_somewhere(document: str) -> None:
    place = ROOT_FOLDER / document
    text = re.sub(r"^```.*?^```", "", place.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", re.sub(r"`[^`]*`", "", text)):
        if "://" in link:
            continue
        target = place.parent / link if link else place
        assert target.exists(), f"{link} is not there"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}#{anchor} is not a heading"


def test_every_page_is_in_the_navigation_once() -> None:
    home = ROOT_FOLDER / "docs/index.md"
    listed = [
        str(page.relative_to(ROOT_FOLDER))
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", home.read_text(encoding="utf-8"), flags=re.M | re.S)
        for line in tree.splitlines()
        if line and not line.startswith((":", "reference/api/"))
        for page in sorted(home.parent.glob(f"{line}.md"))
    ]
    assert sorted([*listed, "docs/index.md"]) == SITE


def test_the_how_to_on_comparisons_names_every_metric_that_cannot_be_compared() -> None:
    text = (ROOT_FOLDER / "docs/howto/compare.md").read_text(encoding="utf-8")
    listed = text.partition("The exceptions are ")[2].partition(": ")[0]
    without = [name for name in registry.names("metrics") if not registry.find("metrics", name).has_differences]
    assert re.findall(r"`(\w+)`", listed) == without


def test_the_scorer_of_the_contributors_guide_does_what_it_says(tmp_path: Path) -> None:
    [block] = [block for block in blocks_of("CONTRIBUTING.md") if block.language == "python"]
    (tmp_path / "same_length.py").write_text(block.text)
    done = subprocess.run(
        [sys.executable, "-m", "doctest", "-v", "same_length.py"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


@pytest.mark.slow
def test_the_example_of_estimators_runs(tmp_path: Path) -> None:
    example = ROOT_FOLDER / "examples" / "estimator.py"
    done = run_python(example.read_text(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    logistic, forest, again = done.stdout.splitlines()
    assert re.match(r"logistic regression: 0\.9[78]\d of 1707 .* 1,707 of 1,707 done now", logistic)
    assert re.match(r"random forest: 0\.9[4-7]\d of 1707 .* 1,707 of 1,707 done now", forest)
    assert again.startswith("again: 0 of 1,707 done now, 1,707 kept")


@pytest.mark.slow
def test_the_example_of_trade_offs_draws_fronts_with_bands_and_reports_a_pick(tmp_path: Path) -> None:
    example = ROOT_FOLDER / "examples" / "tradeoffs" / "voters.py"
    done = run_python(example.read_text(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.match(r"to choose: \d{3} points of 3 models, \d+ on the front\n", done.stdout)
    assert re.search(r"\nhypervolume 0\.8\d\d, on test 0\.8\d\d \(0\.\d+ to 0\.\d+\)\n", done.stdout)
    band = r"\(0\.\d+ to 0\.\d+\)"
    banded = rf"\n  nearest neighbours   accuracy 0\.8\d\d {band}, odds difference 0\.\d+ {band}\n"
    assert re.search(banded, done.stdout)
    assert re.search(r"\n  accuracy: 0\.8\d\d where chosen, 0\.8\d\d \(0\.\d+ to 0\.\d+\) on test\n", done.stdout)
    assert {path.name for path in tmp_path.iterdir()} == {"front.html", "front.svg", "radar.svg", "rates.svg"}
    page = (tmp_path / "front.html").read_text()
    assert page.count('<path class="area ') == 2
    for shown in (
        "95 % of such bands hold",
        "Rates of groups: ",
        "recall by age (should be equal)",
        "Radar of indicators",
    ):
        assert shown in page


def test_every_target_of_make_that_a_page_names_exists_and_is_explained() -> None:
    explained = set(re.findall(r"^([a-z-]+):.*## ", (ROOT_FOLDER / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        named = re.findall(r"(?:^    |`)make ([a-z-]+)", (ROOT_FOLDER / document).read_text(), re.MULTILINE)
        assert {*named} <= explained, document


def test_the_demo_prints_what_the_readme_says(tmp_path: Path) -> None:
    """Line breaks do not count: they go by the width of the terminal."""
    shutil.copytree(ROOT_FOLDER / "examples" / "classifiers", tmp_path / "examples" / "classifiers")
    recipe = (ROOT_FOLDER / "Makefile").read_text().split("\ndemo: ")[1].split("\n\n")[0].splitlines()[1:]
    commands = [re.sub(r"^\t@(echo; )?", "", line).replace("$(BIN)/", "") for line in recipe]
    printed = " ".join("".join(run_commands(commands, tmp_path)).split())
    shown = [block.text for block in blocks_of("README.md") if block.language == "text" and "…" in block.text]
    assert len(shown) == 2
    for text in shown:
        assert re.search(re.escape(" ".join(text.split())).replace("…", ".*"), printed), printed


def test_the_experiments_of_the_readme_are_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    [one, chats] = [block for block in blocks_of("README.md") if block.language == "yaml"]
    assert list(ExperimentSpec.model_validate(yaml.safe_load(one.text)).tasks) == ["bot", "last_month"]
    (tmp_path / "capitals.yaml").write_text(chats.text)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/long.txt").write_text("Name the capital of {{ country }}.")
    (tmp_path / "capitals.jsonl").write_text('{"country": "France", "capital": "Paris"}\n')
    tasks = Experiment.from_file(tmp_path / "capitals.yaml").tasks
    assert list(tasks) == ["ask/short/mini", "ask/short/nano", "ask/long/mini", "ask/long/nano"]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """Of experiment files; it takes long to make."""
    return json_schema()


def test_the_published_schema_is_the_present_one(schema: dict[str, Any]) -> None:
    published = json.loads((ROOT_FOLDER / "docs" / "reference" / "experiment.schema.json").read_text())
    assert published == schema, "run python docs/reference/write_schema.py"


def test_the_published_schema_of_suites_is_the_present_one() -> None:
    published = json.loads((ROOT_FOLDER / "docs" / "reference" / "suite.schema.json").read_text())
    assert published == suite_json_schema(), "run python docs/reference/write_schema.py"


@pytest.mark.parametrize("example", ["classifiers", "gsm8k", "tagging"])
def test_the_published_schema_takes_the_examples(example: str, schema: dict[str, Any]) -> None:
    experiment = yaml.safe_load((ROOT_FOLDER / "examples" / example / "experiment.yaml").read_text())
    jsonschema.Draft202012Validator(schema).validate(experiment)


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
def test_the_published_schema_refuses_what_cannot_run(change: dict[str, object], schema: dict[str, Any]) -> None:
    experiment = yaml.safe_load((ROOT_FOLDER / "examples" / "gsm8k" / "experiment.yaml").read_text()) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(experiment)


def parts_of(schema: dict[str, Any]) -> dict[str, set[str]]:
    """Each part of an experiment file, as the reference calls it, with its keys."""
    specs = {
        "dataset": "DatasetSpec",
        "fairness": "FairnessSpec",
        "tradeoffs": "TradeoffSpec",
        "matches": "MatchesSpec",
        "judge, code": "JudgeCodeSpec",
        "run": "RunSpec",
        "budget": "BudgetSpec",
        "engine": "EngineSpec",
    }
    parts = {part: schema["$defs"][name] for part, name in specs.items()}
    of_matches = parts["matches"]["properties"]
    parts["rating"] = of_matches["rating"]["anyOf"][0]
    for group in ("judge", "schedule"):
        kinds = [one for one in of_matches[group]["anyOf"] if "kind" in one.get("properties", {})]
        parts |= {f"{group}, kind: {kind['title']}": kind for kind in kinds}
    for group, code in (("tasks", "TaskCodeSpec"), ("scorers", "ScorerCodeSpec")):
        parts[f"{group}, code"] = schema["$defs"][code]
        kinds = [
            one
            for one in schema["properties"][group]["anyOf"][0]["additionalProperties"]["anyOf"]
            if "properties" in one
        ]
        parts |= {f"{group}, kind: {kind['title']}": kind for kind in kinds}
    common = {"kind", "view", "expected_view", "output_schema"}  # what every kind has is listed where code is
    keys = {part: {*spec["properties"]} - (common if "kind:" in part else set()) for part, spec in parts.items()}
    metrics = [one for one in schema["properties"]["metrics"]["anyOf"][0]["items"]["anyOf"] if "properties" in one]
    keys = {part: names for part, names in keys.items() if names}  # all_pairs has no parameter
    return keys | {"metrics": {key for metric in metrics for key in metric["properties"]}}


@pytest.mark.parametrize("kind", registry.names("metrics"))
def test_the_page_on_intervals_names_that_of_every_metric(kind: str) -> None:
    made = registry.find("metrics", kind)
    needed = {"k": 1, "q": 0.5}
    metric = made(**{f.name: needed[f.name] for f in fields(made) if f.init and f.name in needed})
    table = (ROOT_FOLDER / "docs" / "intervals.md").read_text().split("| metric | interval |\n")[1].split("\n\n")[0]
    rows = dict(line.strip("| ").split(" | ") for line in table.splitlines()[1:])
    named = [how for kinds, how in rows.items() if kind in re.findall(r"\w+", kinds)]  # of labels, and of things
    shown = "; ".join(named) or "the jackknife's variance"
    words = {
        "wilson": "Wilson",
        "student": "Student",
        "hall": "Hall|roots",
        "score": "score interval",
        "woodruff": "Woodruff",
        "jackknife": "jackknife",
        "influence": "influence",
        "prediction-powered": "prediction-powered",
        "noncentral": "noncentral",
        None: "none: ",
    }
    assert re.search(words[metric.interval_name], shown)


def test_the_reference_names_every_key_of_the_experiment_file_and_no_other(schema: dict[str, Any]) -> None:
    page = (ROOT_FOLDER / "docs/reference/experiment-file.md").read_text(encoding="utf-8")
    parts = re.split(r"^##+ (.*)\n", page, flags=re.MULTILINE)[1:]
    listed = {
        title.replace("`", ""): {
            key for keys in re.findall(r"^\| (.*?) \|", text, re.MULTILINE) for key in re.findall(r"`(\w+)`", keys)
        }
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }
    assert {title: keys for title, keys in listed.items() if keys} == parts_of(schema)


def test_the_reference_says_what_metrics_do_about_missing_rows_and_several_responses() -> None:
    page = (ROOT_FOLDER / "docs/reference/experiment-file.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^\| `missing`, `reduce` \| (.*?) \|", page, flags=re.MULTILINE)
    usual, *special = shown.split("; ")
    own = {name: others for kinds, others in (part.split(": ") for part in special) for name in kinds.split(", ")}
    for name in registry.names("metrics"):
        defaults = {field.name: field.default for field in fields(registry.find("metrics", name))}
        assert f"{defaults['missing']}, {defaults['reduce']}" == own.get(name, usual), name


def test_a_package_index_gets_a_readme_without_relative_links() -> None:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT_FOLDER / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    readme = (ROOT_FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((?!https?://)[^)]*\)", module.resolve_links(readme, {})) == []
    urls = {"Documentation": "https://docs.example/", "Source": "https://code.example/evaluand"}
    resolved = module.resolve_links(readme, urls)
    assert re.findall(r"\]\((?!https?://)[^)]*\)", resolved) == []
    assert "![The report of the demo](https://docs.example/_images/report.png)" in resolved
    assert "](https://docs.example/howto/gate.html)" in resolved
    assert "](https://code.example/evaluand/LICENSE)" in resolved
