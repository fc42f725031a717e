"""Trade-offs from the command line: points, indicators, pictures and picks, and what is refused."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure
from evaluand.cli import main
from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.interop.fairical import Solutions
from evaluand.metrics.column_statistics import Mean
from evaluand.report.html.page import asset
from evaluand.run.runner import Runner
from evaluand.store.directory import DirectoryStore
from evaluand.tradeoff import solve
from evaluand.tradeoff.evaluations import confidences_of, of_aggregation
from evaluand.tradeoff.files.metrics import parse_metric

HOSTILE = "<script>alert(1)</script>"


def scores(seed: int, models: tuple[str, ...] = ("tree", "net"), n: int = 200) -> dict[str, Any]:
    draw = random.Random(seed)
    truth = [int(draw.random() < 0.4) for _ in range(n)]
    sex = [draw.choice("ab") for _ in range(n)]
    sure = [
        [
            round(1 / (1 + math.exp(0.7 - 1.5 * one - 0.4 * (of == "a") - draw.gauss(0, 1))), 4)
            for one, of in zip(truth, sex, strict=True)
        ]
        for _ in models
    ]
    return {"scores": sure, "identifiers": list(models), "ground-truth": truth, "attributes": {"sex": sex}}


class Folder:
    """A folder with files of scores, in which commands are called."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, document: Any) -> str:
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(json.dumps(document))
        return str(self.path / name)

    def call(self, *arguments: str) -> Result:
        return CliRunner(env={"COLUMNS": "160"}).invoke(main, ["tradeoff", *arguments])

    def done(self, *arguments: str) -> str:
        result = self.call(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def refused(self, *arguments: str, code: int = 2) -> str:
        result = self.call(*arguments)
        assert result.exit_code == code, result.output
        return result.output.splitlines()[-1]

    def solved(self, name: str, *arguments: str) -> str:
        """The file of the solutions of a system."""
        out = self.path / "solutions"
        self.done("solve", str(self.path / name), "--out", str(out), *arguments)
        return str(out / Path(name).name)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("scores/a.json", scores(1))
    made.write("scores/b.v1.json", scores(2))
    return made


def test_what_is_solved_can_be_evaluated_side_by_side(folder: Folder) -> None:
    files = [folder.solved("scores/a.json"), folder.solved("scores/b.v1.json")]
    assert [Path(file).name for file in files] == ["a.json", "b.v1.json"]
    assert list(Solutions.load(files[0])) == ["acc", "eod+sex"]
    printed = json.loads(folder.done("evaluate", *files, "--json"))["indicators"]
    assert list(printed) == ["a", "b.v1"]
    assert all(0 < one["hv"] < 1 for one in printed.values())
    assert max(one["relative_onvg"] for one in printed.values()) == 1
    table = folder.done("evaluate", *files)
    assert f"{printed['a']['hv']:.4f}" in table
    assert f"{printed['b.v1']['area']:.4f}" in table


@pytest.mark.parametrize(
    ("form", "begin"), [("github", "| system"), ("csv", "system,hv,ud"), ("latex", r"\begin{tabular}")]
)
def test_indicators_are_reported_in_usual_formats(folder: Folder, form: str, begin: str) -> None:
    assert folder.done("evaluate", folder.solved("scores/a.json"), "--format", form).startswith(begin)


@pytest.mark.parametrize("form", ["github", "csv", "tsv"])
def test_tables_keep_names_and_counts_as_they_are(folder: Folder, form: str) -> None:
    file = folder.solved("scores/a.json")
    year = folder.write("years/2019.json", json.loads(Path(file).read_text()))
    count = json.loads(folder.done("evaluate", year, "--json"))["indicators"]["2019"]["onvg"]
    *_, row = folder.done("evaluate", year, "--format", form).splitlines()
    cells = [cell.strip() for cell in row.replace("|", " ").replace(",", " ").split()]
    assert cells[0] == "2019"
    assert cells[5] == str(int(count))


def test_a_name_ends_no_cell_of_a_table(folder: Folder) -> None:
    file = folder.solved("scores/a.json")
    *_, row = folder.done("evaluate", file, "--name", "a|b", "--format", "github").splitlines()
    assert row.startswith(r"| a\|b ")
    assert "there is no 'unsafehtml'" in folder.refused("evaluate", file, "--format", "unsafehtml")
    assert "--name must not be empty" in folder.refused("evaluate", file, "--name", " ")


def test_thresholds_may_be_given_one_by_one(folder: Folder) -> None:
    file = folder.solved("scores/a.json", "--thresholds", "0.3,0.5")
    assert set(json.loads(Path(file).read_text())["metadata"]["thresholds"]) == {0.3, 0.5}


def test_points_and_picks_are_reported_in_usual_formats_too(folder: Folder) -> None:
    out = str(folder.path / "out")
    solved = folder.done("solve", str(folder.path / "scores/a.json"), "--out", out, "--format", "csv").splitlines()
    assert solved[0] == "system,points,on the front,undefined,written"
    assert solved[1].startswith("a,")
    assert solved[1].endswith("a.json")
    file = f"{out}/a.json"
    picked = folder.done(
        "pick", file, "--best", "acc", "--on", str(folder.path / "scores/b.v1.json"), "--format", "csv"
    )
    head, *rows = picked.splitlines()
    assert head == "point,threshold,metric,chosen at,there,low,high"
    assert [row.split(",")[2] for row in rows] == ["acc", "eod+sex"]
    assert folder.done("pick", file, "--best", "acc", "--format", "github").startswith("| point")


def test_files_of_one_name_are_distinguished_by_other_names(folder: Folder) -> None:
    files = [
        folder.solved("scores/a.json"),
        folder.write("other/a.json", json.loads(Path(folder.solved("scores/b.v1.json")).read_text())),
    ]
    named = ["--name", "mine", "--name", "theirs"]
    assert list(json.loads(folder.done("evaluate", *files, *named, "--json"))["indicators"]) == ["mine", "theirs"]
    both = [folder.write("x/s.json", scores(1)), folder.write("y/s.json", scores(2))]
    folder.done("solve", *both, *named, "--out", str(folder.path / "named"))
    assert sorted(each.name for each in (folder.path / "named").iterdir()) == ["mine.json", "theirs.json"]


def test_metrics_in_another_order_are_the_same(folder: Folder) -> None:
    file = folder.solved("scores/a.json")
    document = json.loads(Path(file).read_text())
    turned = {**document, "points": dict(reversed(document["points"].items()))}
    printed = json.loads(folder.done("evaluate", file, folder.write("b.json", turned), "--json"))["indicators"]
    assert printed["a"] == printed["b"]


def undefined(folder: Folder) -> str:
    """A file with a point that is best by both metrics, and undefined by one."""
    printed = {"identifiers": [0, 0], "thresholds": [0.5, 0.6789012345678901], "undefined": {"eod+sex": [0]}}
    return folder.write("u.json", {"points": {"acc": [0.9, 0.8], "eod+sex": [0.0, 0.1]}, "metadata": printed})


def test_a_pick_rests_on_what_is_defined_and_tells_the_threshold_to_the_last_digit(folder: Folder) -> None:
    result = folder.call("pick", undefined(folder), "--best", "acc", "--where", "eod+sex <= 0.2")
    assert "note: 1 of 2 points have undefined values of these objectives" in result.stderr
    assert "model-1 at 0.6789012345678901\n" in result.stdout
    assert "–" in folder.done("pick", undefined(folder), "--best", "acc")


@pytest.mark.parametrize("command", [["evaluate"], ["plot", "--out", "OUT"]])
def test_points_that_rest_on_undefined_values_are_reported(folder: Folder, command: list[str]) -> None:
    out = str(folder.path / "front.svg")
    result = folder.call(*[out if part == "OUT" else part for part in command], undefined(folder))
    assert "note: u: 1 of 2 points rest on undefined values" in result.stderr


@pytest.mark.parametrize("which", ["every", "roc"])
def test_the_threshold_that_nothing_reaches_is_tried_with_any_metric(folder: Folder, which: str) -> None:
    solved = folder.solved("scores/a.json", "--thresholds", which, "--metric", "f1", "--metric", "eod+sex")
    assert "Infinity" in json.loads(Path(solved).read_text())["metadata"]["thresholds"]


def test_a_format_that_is_none_is_refused(folder: Folder) -> None:
    assert "there is no 'word'; there are csv, " in folder.refused(
        "evaluate", folder.solved("scores/a.json"), "--format", "word"
    )


@pytest.mark.parametrize(
    ("metrics", "suffix"),
    [
        (["acc", "eod+sex"], ".svg"),
        (["acc", "f1", "eod+sex"], ".png"),
        (["acc", "f1", "eod+sex", "dpd+sex"], ".pdf"),
    ],
)
def test_fronts_are_drawn_in_two_three_and_more_dimensions(folder: Folder, metrics: list[str], suffix: str) -> None:
    wanted = [part for metric in metrics for part in ("--metric", metric)]
    out = folder.path / f"front{suffix}"
    folder.done("plot", folder.solved("scores/a.json", "--thresholds", "5", *wanted), "--out", str(out))
    begin = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert out.read_bytes().startswith(begin)


def test_a_radar_chart_tells_the_area_of_each_system(folder: Folder) -> None:
    out = folder.path / "radar.svg"
    file = folder.solved("scores/a.json")
    folder.done("plot", file, "--kind", "radar", "--out", str(out))
    area = json.loads(folder.done("evaluate", file, "--json"))["indicators"]["a"]["area"]
    assert f"a (area {area:.3g})" in out.read_text()


@pytest.mark.parametrize("suffix", [".html", ".svg"])
def test_fronts_have_bands_where_the_scores_are_given(folder: Folder, suffix: str) -> None:
    folder.write("scores/z.json", scores(9))
    files = [folder.solved(f"scores/{name}.json", "--thresholds", "20") for name in "az"]
    out = folder.path / f"front{suffix}"
    folder.done("plot", *files, "--scores", str(folder.path / "scores" / "a.json"), "--out", str(out))
    text = " ".join(re.sub(r"<[^>]*>", " ", re.sub("<!--|-->", " ", out.read_text())).split())
    assert "95 % of such bands hold for all points of a model at once." in text
    assert out.read_text().count('<path class="area s0"') == (suffix == ".html")
    assert ("Rates of groups: " in text) == (suffix == ".html")


def test_scores_of_one_file_of_solutions_may_have_another_name_but_not_other_values(folder: Folder) -> None:
    file = folder.solved("scores/a.json", "--thresholds", "20")
    same = folder.write("scores/same.json", json.loads((folder.path / "scores" / "a.json").read_text()))
    other = folder.write("scores/other.json", scores(9))
    folder.done("plot", file, "--scores", same, "--out", str(folder.path / "page.html"))
    out = str(folder.path / "none.html")
    printed = folder.refused("plot", file, "--scores", other, "--out", out, code=1)
    assert re.search(r"\d+ of the \d+ solutions a have other values on these scores, by up to 0\.\d+", printed)
    printed = folder.refused("plot", file, "--scores", same, "--scores", other, "--out", out, code=1)
    assert "no solutions are called same; there are: a" in printed
    printed = folder.refused("plot", file, "--scores", same, "--kind", "radar", "--out", out.replace("html", "svg"))
    assert "a radar chart has none" in printed


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)


def test_a_page_holds_planes_indicators_and_the_points_of_the_front_and_no_markup_from_data(folder: Folder) -> None:
    folder.write(
        "scores/hostile.json", {**scores(3, (HOSTILE, "x")), "attributes": {HOSTILE: scores(3)["attributes"]["sex"]}}
    )
    out = folder.path / "page.html"
    file = folder.solved("scores/hostile.json")
    folder.done("plot", file, "--out", str(out))
    text = out.read_text()
    tags = _Tags(text).found
    assert tags.count("script") == 2  # one that runs, and the points
    assert HOSTILE not in text
    assert tags.count("svg") == 2  # a plane and the radar
    assert tags.count("table") == 2
    front, _ = Solutions.load(file).non_dominated_solutions()
    assert tags.count("tr") == 2 + 1 + front.n_points  # two heads, a system, its points
    assert "http" not in text.replace(asset("report.js"), "").replace("http-equiv", "")


def test_a_pick_is_looked_at_on_other_samples_with_intervals(folder: Folder) -> None:
    file = folder.solved("scores/a.json")
    rates = folder.path / "rates.png"
    other = str(folder.path / "scores/b.v1.json")
    printed = json.loads(
        folder.done(
            "pick", file, "--best", "acc", "--where", "eod+sex <= 0.1", "--on", other, "--rates", str(rates), "--json"
        )
    )
    assert printed["chosen"]["eod+sex"] <= 0.1
    assert printed["there"]["acc"]["low"] < printed["there"]["acc"]["value"] < printed["there"]["acc"]["high"]
    assert rates.read_bytes().startswith(b"\x89PNG")
    best = max(a for a, e in zip(*(Solutions.load(file)[name] for name in ("acc", "eod+sex")), strict=True) if e <= 0.1)
    assert printed["chosen"]["acc"] == best


def test_what_rests_on_a_group_without_negatives_there_is_reported_with_its_reason(folder: Folder) -> None:
    other = scores(1)
    other["attributes"]["sex"] = ["b" if truth else "a" for truth in other["ground-truth"]]
    asked = ("pick", folder.solved("scores/a.json"), "--best", "acc", "--on", folder.write("other.json", other))
    why = "rests on rates without rows, which count as 0"
    assert json.loads(folder.done(*asked, "--json"))["reasons"] == {"there": {"eod+sex": why}}
    assert f"note: eod+sex there: {why}" in folder.call(*asked).stderr


def test_an_attribute_with_a_sign_in_its_name_can_be_limited(folder: Folder) -> None:
    document = scores(0)
    document["attributes"] = {"a<=b": document["attributes"]["sex"]}
    file = folder.solved(folder.write("signs.json", document))
    for limit in ("eod+a<=b <= 0.3", "eod+a<=b >= 0.01"):
        assert "eod+a<=b" in folder.done("pick", file, "--best", "acc", "--where", limit)


def test_thresholds_of_one_system_are_applied_to_another(folder: Folder) -> None:
    file = folder.solved("scores/a.json")
    out = folder.path / "prior"
    folder.done(
        "solve",
        str(folder.path / "scores/b.v1.json"),
        "--prior",
        file,
        "--only",
        "front",
        "--no-deduplicate",
        "--out",
        str(out),
    )
    found, front = Solutions.load(out / "b.v1.json"), Solutions.load(file).non_dominated_solutions()[0]
    assert found.metadata["thresholds"] == front.metadata["thresholds"]
    assert found.metadata["nds-from"] == "a"


def refusals(folder: Folder) -> Iterator[tuple[list[str], str]]:
    a, file = str(folder.path / "scores/a.json"), folder.solved("scores/a.json")
    twin = folder.write("other/a.json", scores(5))
    inputs, free = str(folder.path / "scores"), str(folder.path / "free")
    yield ["solve", a, "--out", inputs, "--force"], "is an input and cannot be the output"
    folder_of_file = str(Path(file).parent)
    yield ["solve", a, "--prior", file, "--out", folder_of_file, "--force"], "is an input and cannot be the output"
    yield ["solve", a, "--out", folder_of_file], "already exists"
    yield ["solve", a, twin, "--out", free], "several systems are called a; name each by --name"
    again = folder.write("again/a.json", json.loads(Path(file).read_text()))
    yield ["evaluate", file, again], "several systems are called a; name each by --name to compare them"
    yield ["solve", a, "--out", free, "--thresholds", "few"], "must be every, roc, a number of thresholds"
    yield ["solve", a, "--out", free, "--thresholds", "1"], "at least 2"
    yield ["solve", a, "--out", free, "--only", "front"], "--only needs --prior"
    yield ["solve", "--out", free], "give either files of scores or --stored"
    yield ["solve", a, "--by", "sex", "--out", free], "--by needs --stored; files of scores already define it"
    yield ["plot", file, "--out", file, "--force"], "is an input and cannot be the output"
    yield ["solve", a, "--out", free, "--prior", file, "--thresholds", "20"], "--prior already has thresholds"
    yield ["solve", a, "--out", free, "--name", "x", "--name", "y"], "there are 1 systems and 2 names"
    yield ["solve", a, "--out", free, "--format", "csv", "--json"], "give either --format or --json"
    yield ["evaluate"], "give files of solutions, or --stored"
    yield ["evaluate", file, "--metric", "acc"], "--metric needs --stored"
    page, picture = str(folder.path / "x.html"), str(folder.path / "x.svg")
    yield ["plot", file, "--out", page, "--kind", "radar"], "--kind and --hide-dominated apply to figures"
    yield ["plot", file, "--out", page, "--hide-dominated"], "--kind and --hide-dominated apply to figures"
    yield (
        ["plot", file, "--out", picture, "--kind", "radar", "--hide-dominated"],
        "--hide-dominated and --scores apply to points",
    )
    yield ["pick", file, "--best", "acc", "--rates", picture], "give them with --on or --on-stored"
    yield ["pick", "--best", "acc"], "give either a file of solutions or --stored"
    yield ["pick", file, "--best", "acc", "--label", "x"], "--label needs --stored"
    yield ["pick", file, "--best", "acc", "--on", a, "--on-stored", "x"], "give either --on or --on-stored"


def test_nothing_is_replaced_or_guessed(folder: Folder) -> None:
    for arguments, sentence in refusals(folder):
        assert sentence in folder.refused(*arguments)
    assert not (folder.path / "free").exists()


def errors(folder: Folder) -> Iterator[tuple[list[str], str]]:
    a, file, free = str(folder.path / "scores/a.json"), folder.solved("scores/a.json"), str(folder.path / "free")
    other = folder.write(
        "other/f.json",
        json.loads(Path(folder.solved("scores/b.v1.json", "--metric", "acc", "--metric", "dpd+sex")).read_text()),
    )
    yield (
        ["solve", a, "--out", free, "--metric", "acc", "--metric", "eod+race"],
        "there is no attribute 'race' to group by; there are: sex",
    )
    yield ["solve", a, "--out", free, "--metric", "tpr"], "tpr alone cannot be the utility"
    yield ["solve", a, "--out", free, "--metric", "eod"], "there is no metric 'eod'; write eod+ATTRIBUTE"
    yield ["solve", file, "--out", free], "a.json: attributes: is missing"
    yield ["evaluate", file, other], "f has other objectives than the systems before it"
    yield ["plot", file, "--out", str(folder.path / "front.docx")], "is not that of a figure; use .png, .svg, .pdf"
    yield ["pick", file, "--best", "f1"], "there is no objective 'f1'; there are: acc, eod+sex"
    yield (
        ["pick", file, "--best", "acc", "--where", "acc >= 1.5"],
        "no point is within the limits: 'acc >= 1.5' is met by 0",
    )
    yield ["pick", file, "--best", "acc", "--where", "acc = 1"], "is not a limit; write it as in 'eod+sex <= 0.05'"


def test_mistakes_are_reported_in_a_sentence(folder: Folder) -> None:
    for arguments, sentence in errors(folder):
        assert sentence in folder.refused(*arguments, code=1)
    assert not (folder.path / "free").exists()


def test_one_file_that_cannot_be_read_leaves_nothing_half_done(folder: Folder) -> None:
    broken = folder.write("scores/z.json", {**scores(1), "ground-truth": [0, 1]})
    out = folder.path / "free"
    assert "z.json: ground-truth: has 2 labels" in folder.refused(
        "solve", str(folder.path / "scores/a.json"), broken, "--out", str(out), code=1
    )
    assert not out.exists()


def variants() -> Aggregation:
    """Answers of three lengths, judged by how long they ought to be and by how short they are."""
    rows = [{"input": str(i), "expected": "x" * (2 + 4 * (i % 2)), "topic": "ab"[i % 2]} for i in range(20)]
    data = Dataset.from_rows(rows, attributes=["topic"])

    def made(k: int) -> Any:
        run = Runner().run(lambda text, k=k: "x" * k, data)
        scorers = {
            "fit": lambda output, expected: 1 - abs(len(output) - len(expected)) / 6,
            "brief": lambda output: 1 - len(output) / 6,
        }
        return Evaluator().evaluate(run, scorers)

    mean = Mean(range=(0, 1), direction="higher")
    measures = [Measure("fit", mean, ("topic",), ("difference",)), Measure("brief", mean)]
    return Aggregator().aggregate([made(k) for k in (2, 4, 6)], measures, labels=["short", "middle", "long"])


def test_the_variants_of_an_application_are_points_with_their_intervals() -> None:
    points = of_aggregation(variants(), ["mean(fit)", "mean(brief)", "mean(fit) difference by topic"])
    assert points.models == ("short", "middle", "long")
    assert points.value.round(12).tolist() == [
        [round(2 / 3, 12), round(2 / 3, 12), round(2 / 3, 12)],
        [round(2 / 3, 12), round(1 / 3, 12), 0.0],
        [round(2 / 3, 12), 0.0, round(2 / 3, 12)],
    ]
    assert [points.models[number] for number in points.front().model] == ["short", "middle"]
    assert points.ends is not None
    assert (points.ends.low[:, 1] <= points.value[:, 1]).all()
    assert points.pick("mean(brief)", ["mean(fit) difference by topic <= 0.1"]).model.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mean", r"'mean' was computed of several scorers; write such as mean\(fit\)"),
        ("accuracy", r"'accuracy' was not computed; there are: mean\(fit\), mean difference by topic, mean\(brief\)"),
        ("mean(brief) difference by topic", "was not computed"),
        ("mean(fit) of topic", "is not an objective"),
    ],
)
def test_what_was_not_computed_is_no_objective(text: str, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        of_aggregation(variants(), [text])


def classifiers(*sure: tuple[float | None, ...]) -> dict[str, Evaluation]:
    """Models that said yes, each with its confidences of that, of the same four rows."""
    rows = [{"input": i, "expected": i % 2 == 1, "site": "ab"[i // 2]} for i in range(4)]
    data = Dataset.from_rows(rows, attributes=["site"])

    def evaluated(mine: tuple[float | None, ...]) -> Evaluation:
        run = Runner().run(lambda i: {"prediction": mine[i] >= 0.5, "confidence": max(mine[i], 1 - mine[i])}, data)
        return Evaluator().evaluate(run, {"right": Prediction(type="boolean")})

    return {f"model {place}": evaluated(one) for place, one in enumerate(sure)}


def test_stored_confidences_of_the_predicted_class_become_those_of_the_positive_one() -> None:
    given = confidences_of(classifiers((0.1, 0.9, 0.6, 0.4), (0.2, 0.3, 0.4, 0.8)), ["site"])
    assert given.truth.tolist() == [False, True, False, True]
    assert {name: values.round(12).tolist() for name, values in given.models.items()} == {
        "model 0": [0.1, 0.9, 0.6, 0.4],
        "model 1": [0.2, 0.3, 0.4, 0.8],
    }
    assert solve(given, ["accuracy", "recall difference by site"]).front().value.tolist() == [[0.75, 0.0]] * 2


def test_rows_that_a_model_failed_on_are_left_out_for_all_and_reported() -> None:
    with pytest.warns(EvaluandWarning, match="1 row is left out, as not every model has a confidence for it"):
        given = confidences_of(classifiers((0.1, 0.9, 0.6, 0.4), (None, 0.3, 0.4, 0.8)))
    assert [len(values) for values in given.models.values()] == [3, 3]


@pytest.mark.parametrize("roles", [{"weight": "w"}, {"cluster": "who"}, {"weight": "w", "cluster": "who"}, {}])
def test_stored_confidences_have_the_weights_and_clusters_of_the_dataset(roles: dict[str, str]) -> None:
    rows = [{"input": i, "expected": i % 2 == 1, "w": 1.0 + i, "who": "ab"[i // 2]} for i in range(4)]
    run = Runner().run(lambda i: {"prediction": True, "confidence": i / 4}, Dataset.from_rows(rows, **roles))
    given = confidences_of({"m": Evaluator().evaluate(run, {"right": Prediction(type="boolean")})})
    weight, cluster = (None if each is None else each.tolist() for each in (given.weight, given.cluster))
    assert weight == ([1.0, 2.0, 3.0, 4.0] if "weight" in roles else None)
    assert (None if cluster is None else [cluster.count(each) for each in cluster]) == (
        [2, 2, 2, 2] if "cluster" in roles else None
    )


def test_replications_of_an_example_belong_together() -> None:
    data = Dataset.from_rows([{"input": i, "expected": i % 2 == 1} for i in range(3)])
    run = Runner().run(lambda i: {"prediction": True, "confidence": i / 4}, data, replications=2)
    given = confidences_of({"m": Evaluator().evaluate(run, {"right": Prediction(type="boolean")})})
    assert given.cluster is not None
    assert given.cluster.tolist() == [0, 0, 1, 1, 2, 2]
    assert given.effective == 3


def test_an_attribute_that_the_dataset_lacks_is_reported() -> None:
    with pytest.raises(SpecError, match=r"model 0: 'sites' is not an attribute of the dataset .did you mean 'site'"):
        confidences_of(classifiers((0.1, 0.9, 0.6, 0.4)), ["sites"])


def test_stored_models_are_solved_as_one_system(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    data = [{"input": i, "expected": ["no", "yes"][i % 2], "site": "ab"[i // 4]} for i in range(8)]
    for name, sure in (("m/one", [0.1, 0.9, 0.6, 0.4, 0.2, 0.7, 0.3, 0.8]), ("m/two", [0.5] * 8)):
        answers = [{"prediction": "yes", "confidence": each} for each in sure]
        run = Runner(store).run(
            lambda i, answers=answers: answers[i], Dataset.from_rows(data, attributes=["site"]), name=name
        )
        Evaluator(store).evaluate(run, {"right": Prediction()}, name=name)
    command = ["solve", "--store", str(tmp_path / "store"), "--stored", "m/one", "--stored", "m/two", "--by", "site"]
    made = Folder(tmp_path)
    made.done(*command, "--label", "yes", "--name", "../both", "--no-deduplicate", "--out", str(tmp_path / "out"))
    [file] = (tmp_path / "out").iterdir()
    found = Solutions.load(file)
    assert found.metadata["identifier-names"] == ["one", "two"]
    assert max(found["acc"]) == 0.875
    assert made.refused(*command, "--out", str(tmp_path / "other"), code=1).startswith(
        "error: which label is positive?"
    )


def stored_models(path: Path, missing: bool = False) -> list[str]:
    """A store with a model that tells how sure it is of what it predicts, and the options that name it."""
    store = DirectoryStore(path / "store")
    data = [{"input": i, "expected": ["no", "yes"][i * 7 % 3 % 2], "site": "ab"[i % 2]} for i in range(60)]

    def answer(i: int) -> dict[str, Any]:
        sure = (i * 37 % 60 + 0.7) / 61
        printed = {"prediction": "yes" if sure >= 0.5 else "no", "confidence": sure if sure >= 0.5 else 1 - sure}
        return {**printed, "confidence": None} if missing and i < 3 else printed

    run = Runner(store).run(answer, Dataset.from_rows(data, attributes=["site"]), name="m")
    Evaluator(store).evaluate(run, {"right": Prediction()}, name="m")
    return ["--store", str(path / "store"), "--stored", "m", "--by", "site", "--label", "yes"]


def test_stored_models_are_drawn_with_bands_and_rates_as_their_rows_are_known(tmp_path: Path) -> None:
    out = tmp_path / "front.html"
    Folder(tmp_path).done("plot", *stored_models(tmp_path), "-m", "acc", "-m", "eod+site", "--out", str(out))
    text = out.read_text()
    assert '<path class="area s0"' in text
    assert "95 % of such bands hold for all points of a model at once." in text
    assert "Rates of groups: " in text


def test_what_is_reported_of_the_rows_stands_in_the_page_too(tmp_path: Path) -> None:
    out = tmp_path / "front.html"
    stored = stored_models(tmp_path, missing=True)
    result = Folder(tmp_path).call("plot", *stored, "-m", "acc", "-m", "eod+site", "--out", str(out))
    printed = "3 rows are left out, as not every model has a confidence for them"
    assert result.stderr.count(printed) == 1
    assert f'<p class="note">Note: {printed}</p>' in out.read_text()


def test_scores_that_differ_by_rounding_alone_are_those_that_stored_solutions_were_made_from(tmp_path: Path) -> None:
    """The store has 1 − x for what was sure of the other class, and 1 − (1 − x) is not always x."""
    folder = Folder(tmp_path)
    folder.done("solve", *stored_models(tmp_path), "-m", "acc", "-m", "eod+site", "--out", str(tmp_path / "out"))
    sure = [(i * 37 % 60 + 0.7) / 61 for i in range(60)]
    assert any(1 - (1 - one) != one for one in sure if one < 0.5)
    same = {
        "scores": [sure],
        "identifiers": ["m"],
        "ground-truth": [i * 7 % 3 % 2 for i in range(60)],
        "attributes": {"site": ["ab"[i % 2] for i in range(60)]},
    }
    scores = folder.write("scores/m.json", same)
    out = tmp_path / "front.html"
    folder.done("plot", str(tmp_path / "out" / "m.json"), "--scores", scores, "--out", str(out))
    assert "Rates of groups: " in out.read_text()


@pytest.mark.parametrize(
    ("kind", "labels", "label"),
    [("integer", [0, 1], "1"), ("boolean", [False, True], "True"), ("text", ["false", "true"], "true")],
)
def test_a_label_is_of_the_type_of_the_truths(tmp_path: Path, kind: str, labels: list[Any], label: str) -> None:
    store = DirectoryStore(tmp_path / "store")
    data = Dataset.from_rows(
        [{"input": i, "expected": labels[i % 2], "site": "ab"[i // 4]} for i in range(8)], attributes=["site"]
    )
    run = Runner(store).run(lambda i: {"prediction": labels[1], "confidence": i / 8}, data, name="m")
    Evaluator(store).evaluate(run, {"right": Prediction(type=kind)}, name="m")
    out = str(tmp_path / "out")
    Folder(tmp_path).done(
        "solve", "--store", str(tmp_path / "store"), "--stored", "m", "--by", "site", "--label", label, "--out", out
    )
    assert Solutions.load(tmp_path / "out" / "m.json")["acc"]


class Bots(Folder):
    """A folder with a store in which three bots were run on two sets of examples; nothing has summarised them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.store = DirectoryStore(path / "store")

    def run(self, scale: float = 1.0) -> Bots:
        for name, n in (("valid", 20), ("test", 40)):
            rows = [{"input": str(i), "expected": "x" * (2 + 4 * (i % 2)), "topic": "ab"[i % 2]} for i in range(n)]
            data = Dataset.from_rows(rows, attributes=["topic"])
            for bot, k in (("short", 2), ("middle", 4), ("long", 6)):
                run = Runner(self.store).run(lambda text, k=k: "x" * k, data, name=f"{name}/{bot}")
                fit = {
                    "fit": lambda output, expected: scale * (1 - abs(len(output) - len(expected)) / 6),
                    "brief": lambda output: 1 - len(output) / 6,
                }
                Evaluator(self.store).evaluate(run, fit, name=f"{name}/{bot}")
        return self

    def call(self, command: str, *arguments: str) -> Result:
        return super().call(command, "--store", str(self.path / "store"), *arguments)

    @staticmethod
    def stored(name: str) -> list[str]:
        return [part for bot in ("short", "middle", "long") for part in ("--stored", f"{name}/{bot}")]


@pytest.fixture(scope="module")
def bots(tmp_path_factory: pytest.TempPathFactory) -> Bots:
    """For tests that write no artifact."""
    return Bots(tmp_path_factory.mktemp("bots")).run()


FIT, APART, BRIEF = "mean(fit)", "mean(fit) difference by topic", "mean(brief)"
ASKED = ["--metric", FIT, "--metric", APART]


def test_what_nobody_summarised_is_a_trade_off_at_the_command_line(bots: Bots) -> None:
    result = bots.call("solve", *bots.stored("valid"), *ASKED, "--name", "bots", "--json")
    assert "note: mean(fit) is assumed to range from 0 to 1, higher is better, since all its values do" in result.stderr
    [system] = json.loads(result.stdout)["systems"]
    assert system["system"] == "bots"
    assert [(point["model"], point["threshold"], point["front"]) for point in system["points"]] == [
        ("short", None, False),
        ("middle", None, True),
        ("long", None, False),
    ]
    values = [{name: round(one["value"], 9) for name, one in point["values"].items()} for point in system["points"]]
    apart = round(2 / 3, 9)
    assert values == [{FIT: apart, APART: apart}, {FIT: apart, APART: 0.0}, {FIT: apart, APART: apart}]
    short = system["points"][0]["values"][FIT]
    assert short["low"] < short["value"] < short["high"]
    table = bots.done("solve", *bots.stored("valid"), *ASKED, "--format", "csv").splitlines()
    assert table[0] == "system,point,metric,value,low,high,front"
    assert table[3].startswith("valid/short + valid/middle + valid/long,middle,mean(fit),0.666")
    assert len(table) == 7
    assert not (bots.path / "solutions").exists()


def test_what_was_summarised_is_found_by_the_values_of_its_aggregation(tmp_path: Path) -> None:
    """The values of scores from 0 to 6 are known to the metric that was declared of them."""
    bots = Bots(tmp_path).run(scale=6)
    printed = bots.refused("solve", *bots.stored("valid"), *ASKED, code=1)
    assert "the values of 'fit' lie between 2 and 6, and the range of its scores is unknown; declare it" in printed
    found = [
        each
        for ref in bots.store.refs()
        if ref.kind == "evaluations" and ref.name.startswith("valid/")
        for each in [Evaluation(bots.store, ref.id)]
    ]
    mean = Measure("fit", Mean(range=(0, 6), direction="higher"))
    Aggregator(bots.store).aggregate(found, [mean], name="valid")
    points = json.loads(bots.done("solve", "--stored", "valid", *ASKED, "--json"))["systems"][0]["points"]
    assert [round(point["values"][FIT]["value"], 9) for point in points] == [4.0, 4.0, 4.0]
    assert [point["values"][APART]["value"] for point in points if point["front"]] == [0.0]


def test_stored_systems_are_compared_and_drawn_as_files_are(bots: Bots, tmp_path: Path) -> None:
    parts = [f"{'two' if bot == 'middle' else 'one'}=valid/{bot}" for bot in ("short", "middle", "long")]
    stored = [word for part in parts for word in ("--stored", part)]
    printed = json.loads(bots.done("evaluate", *stored, "--metric", FIT, "--metric", BRIEF, "--json"))["indicators"]
    assert list(printed) == ["one", "two"]
    assert printed["one"]["hv"] == pytest.approx(4 / 9)
    assert printed["two"]["hv"] == pytest.approx(2 / 9)
    for name in ("front.svg", "front.html"):
        bots.done("plot", *stored, "--metric", FIT, "--metric", BRIEF, "--out", str(tmp_path / name))
    assert "mean(brief)" in (tmp_path / "front.html").read_text()


def test_a_stored_variant_is_picked_on_some_examples_and_reported_on_others(bots: Bots) -> None:
    others = [part for bot in ("short", "middle", "long") for part in ("--on-stored", f"test/{bot}")]
    command = ["pick", *bots.stored("valid"), "--best", BRIEF, "--where", f"{APART} <= 0.1", *others]
    printed = json.loads(bots.done(*command, "--json"))
    assert (printed["model"], printed["threshold"]) == ("middle", None)
    assert printed["chosen"] == {BRIEF: pytest.approx(1 / 3), APART: 0.0}
    assert printed["there"][BRIEF]["value"] == pytest.approx(1 / 3)
    assert printed["there"][APART]["low"] is not None
    assert bots.done(*command).startswith("middle\n")
    alone = bots.done("pick", "--stored", "valid/long", "--best", FIT, "--on-stored", "test/middle", "--json")
    assert json.loads(alone)["system"] == "test/middle"


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        (["solve", "--metric", FIT, "--metric", "acc"], "mean(fit) is a metric of stored scores and acc one", 2),
        (["solve", *ASKED, "--out", "x"], "--out applies to models at thresholds", 2),
        (["solve", *ASKED, "--by", "topic"], "--by applies to models at thresholds", 2),
        (["evaluate", *ASKED, "--thresholds", "9"], "--thresholds applies to models at thresholds", 2),
        (["solve", "--metric", "mean"], "'mean': name the scorer, as in 'mean(brief)'; there are brief, fit", 1),
        (["solve", "--metric", "mean(fitt)"], "no scorer is called 'fitt' (did you mean 'fit'?)", 1),
        (["solve", "--metric", "mean(fit) difference by topics"], "'topics' is not an attribute of the dataset", 1),
        (["solve", "--metric", "mean(fit) gap by topic"], "no disparity is called 'gap'", 1),
        (["solve", "--metric", "meen(fit)"], "no metric is called 'meen' (did you mean 'mean'?)", 1),
        (["solve"], "name the scorer of the kind prediction; there are: none", 1),
        (["pick", "--best", FIT, "--where", "mean(fit) < 1"], "is not a limit; write it as in 'mean(fit) <= 0.05'", 1),
        (["pick", "--best", FIT, "--on-stored", "test/middle", "--on-stored", "test/long"], "has no 'short'", 1),
    ],
)
def test_mistakes_about_stored_systems_are_reported_in_a_sentence(
    bots: Bots, arguments: list[str], sentence: str, code: int
) -> None:
    assert sentence in bots.refused(*arguments, *bots.stored("valid"), code=code)


def test_a_threshold_is_picked_on_stored_confidences_and_reported_on_others(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    for name, sure in (("valid", [0.1, 0.9, 0.6, 0.4, 0.2, 0.7, 0.3, 0.8]), ("test", [0.2, 0.8, 0.1, 0.7] * 2)):
        rows = [{"input": i, "expected": ["no", "yes"][i % 2], "site": "ab"[i // 4]} for i in range(8)]
        run = Runner(store).run(
            lambda i, sure=sure: {"prediction": "yes", "confidence": sure[i]},
            Dataset.from_rows(rows, attributes=["site"]),
            name=name,
        )
        Evaluator(store).evaluate(run, {"right": Prediction()}, name=name)
    printed = json.loads(
        Folder(tmp_path).done(
            *("pick", "--store", str(tmp_path / "store"), "--stored", "valid", "--on-stored", "test"),
            *("--label", "yes", "--best", "acc", "--where", "eod+site <= 0.5", "--json"),
        )
    )
    assert (printed["model"], printed["threshold"], printed["chosen"]["acc"]) == ("valid", 0.7, 0.875)
    assert printed["there"]["acc"]["value"] == 1.0


def judged(*outputs: Any, truth: Sequence[str] = "abc") -> dict[str, Evaluation]:
    """A model that gave these outputs to rows whose classes are those of `truth` in turn."""
    rows = [{"input": i, "expected": truth[i % len(truth)]} for i in range(len(outputs))]
    run = Runner().run(lambda i: outputs[i], Dataset.from_rows(rows))
    return {"m": Evaluator().evaluate(run, {"right": Prediction()})}


def said(prediction: str, confidence: float, of: str | None = None) -> dict[str, Any]:
    return {"prediction": prediction, "confidence": confidence, "confidence_of": of}


def test_of_three_classes_one_is_parted_from_the_rest_by_its_own_confidence_alone() -> None:
    """The confidence in b is not what is left of that in a, as there is c."""
    own = confidences_of(judged(said("a", 0.9), said("b", 0.2, "a"), said("c", 0.3, "a")), label="a")
    assert own.truth.tolist() == [True, False, False]
    assert own.models["m"].tolist() == [0.9, 0.2, 0.3]
    with pytest.raises(DataError, match="m: 2 of 3 rows have no confidence in 'a': with 'b' and 'c'"):
        confidences_of(judged(said("a", 0.9), said("b", 0.2), said("c", 0.3)), label="a")


def test_the_probabilities_of_all_classes_tell_that_of_any() -> None:
    outputs = [
        {"prediction": name, "probabilities": {"a": a, "b": b, "c": 1 - a - b}}
        for name, a, b in (("a", 0.7, 0.1), ("b", 0.25, 0.5), ("c", 0.1, 0.2))
    ]
    for label, expected in (("a", [0.7, 0.25, 0.1]), ("b", [0.1, 0.5, 0.2])):
        given = confidences_of(judged(*outputs), label=label)
        assert given.models["m"].tolist() == expected
        assert given.truth.tolist() == [one == label for one in "abc"]


def test_a_third_class_that_only_a_model_gives_is_no_other_of_two() -> None:
    with pytest.raises(DataError, match="2 of 4 rows have no confidence in 'a': with 'b' and 'x'"):
        confidences_of(judged(said("a", 0.9), said("x", 0.8), said("a", 0.3), said("b", 0.6), truth="ab"), label="a")


@pytest.mark.parametrize("label", ["yes", "no"])
def test_the_probability_of_one_class_is_not_taken_for_that_of_the_predicted_one(label: str) -> None:
    """A column `predict_proba(X)[:, 1]` that is recorded as `confidence`."""
    sure = [i / 20 for i in range(20)]
    outputs = [said("yes" if each >= 0.5 else "no", each) for each in sure]
    with pytest.raises(DataError, match=r"m: 10 of 20 confidences are below 0.5.* the probability of 'yes'; .*_of"):
        confidences_of(judged(*outputs, truth=["no", "yes"]), label=label)
    declared = [{**one, "confidence_of": "yes"} for one in outputs]
    given = confidences_of(judged(*declared, truth=["no", "yes"]), label="yes")
    assert given.models["m"].tolist() == sure
    own = [said("yes" if each >= 0.5 else "no", max(each, 1 - each)) for each in sure]
    given = confidences_of(judged(*own, truth=["no", "yes"]), label="yes")
    assert given.models["m"].round(12).tolist() == sure


def test_confidences_below_a_half_that_part_nothing_are_reported() -> None:
    outputs = [said("yes" if i % 2 else "no", 0.3 + i / 50) for i in range(20)]
    with pytest.warns(
        EvaluandWarning, match=r"m: 10 of 20 confidences are below 0.5.*read as those of the predicted class"
    ):
        confidences_of(judged(*outputs, truth=["no", "yes"]), label="yes")


def test_attributes_may_have_any_name(folder: Folder) -> None:
    given = scores(1)
    given["attributes"] = {"age group (years)": given["attributes"]["sex"]}
    folder.write("scores/c.json", given)
    metrics = ["acc", "eod+age group (years)", "minmaxd+f1+age group (years)"]
    file = folder.solved("scores/c.json", *(part for each in metrics for part in ("-m", each)))
    assert list(Solutions.load(file)) == metrics
    where = "eod+age group (years) <= 0.9"
    assert json.loads(folder.done("pick", file, "--best", "acc", "--where", where, "--json"))["threshold"] is not None


def test_what_is_on_different_data_is_no_one_system(bots: Bots) -> None:
    printed = bots.refused("solve", *bots.stored("valid"), *bots.stored("test"), *ASKED, code=1)
    assert "'valid/short' is on the dataset" in printed
    assert "'test/short' on" in printed
    assert "20 examples" in printed
    assert "--stored SYSTEM=NAME" in printed
    assert "--on-stored" in printed
    apart = ["--stored", "one=valid/short", "--stored", "two=test/short"]
    bots.done("evaluate", *apart, "--metric", FIT, "--metric", BRIEF)
    printed = bots.refused("solve", *bots.stored("valid"), "--stored", "valid/long", *ASKED, code=1)
    assert "'valid/long' occurs twice" in printed


def test_the_attributes_of_the_dataset_are_compared_if_no_metric_is_given(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    rows = [{"input": i, "expected": i % 2 == 1, "site": "ab"[i // 4], "sex": "fm"[i % 3 % 2]} for i in range(8)]
    run = Runner(store).run(
        lambda i: {"prediction": True, "confidence": i / 8},
        Dataset.from_rows(rows, attributes=["site", "sex"]),
        name="m",
    )
    Evaluator(store).evaluate(run, {"right": Prediction(type="boolean")}, name="m")
    command = ["solve", "--store", str(tmp_path / "store"), "--stored", "m", "--out"]
    Folder(tmp_path).done(*command, str(tmp_path / "all"))
    assert list(Solutions.load(tmp_path / "all" / "m.json")) == ["acc", "eod+site", "eod+sex"]
    Folder(tmp_path).done(*command, str(tmp_path / "one"), "--by", "sex")
    assert list(Solutions.load(tmp_path / "one" / "m.json")) == ["acc", "eod+sex"]


@pytest.mark.parametrize(("weighted", "expected"), [(None, [1, 2, 3, 4]), (True, [1, 2, 3, 4]), (False, None)])
@pytest.mark.filterwarnings("ignore::evaluand.EvaluandWarning")
def test_weights_are_taken_as_declared_metrics_take_them(weighted: bool | None, expected: list[float] | None) -> None:
    rows = [{"input": i, "expected": i % 2 == 1, "w": 1.0 + i} for i in range(4)]
    run = Runner().run(lambda i: {"prediction": True, "confidence": i / 4}, Dataset.from_rows(rows, weight="w"))
    made = Evaluator().evaluate(run, {"right": Prediction(type="boolean")})
    declared = [] if weighted is None else [Measure("right", Mean(weighted=weighted))]
    given = confidences_of({"m": made}, declared=declared)
    assert (None if given.weight is None else given.weight.tolist()) == expected


def test_native_names_are_reported_by_what_files_call_them(folder: Folder) -> None:
    for text, meant in (("recall", "tpr"), ("f_beta", "f1"), ("equalized_odds difference by sex", "eod+ATTRIBUTE")):
        with pytest.raises(SpecError, match=re.escape(f"(did you mean {meant!r}?)")):
            parse_metric(text)
