"""Trade-offs in a page and in pictures: what is shown of which points, and what is chosen among them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.browser import open_tab, watch
from support.html_page import data_of

from evaluand.core.errors import SpecError
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.metrics.stats.intervals import wilson
from evaluand.report import matplotlib_figures
from evaluand.report.html.page import asset
from evaluand.report.html.tradeoff import write_page
from evaluand.report.tradeoff_facts import area_of_front, describe_ends, ends_of, has_ends
from evaluand.tradeoff import Confidences, Objective, Tradeoff, compare_systems, solve

LOW = "accuracy difference by g"


def points_of(value: Any, objectives: tuple[str, ...] = ("accuracy", LOW), model: str = "m") -> Tradeoff:
    array = np.array(value, float)
    wanted = tuple(map(Objective.parse, objectives))
    n = len(array)
    return Tradeoff(wanted, (model,), np.zeros(n, int), np.arange(n) / 3, array, np.zeros(n, bool))


def long_front(n: int) -> Tradeoff:
    return points_of(np.stack([np.linspace(0.1, 0.9, n), np.linspace(0.1, 0.9, n)], axis=1))


def page_of(systems: dict[str, Tradeoff]) -> str:
    file = io.BytesIO()
    write_page("Points", systems, file)
    return file.getvalue().decode()


def given_to_the_script(text: str) -> dict[str, Any]:
    [found] = data_of(text, "tradeoffs/0")
    output: dict[str, Any] = json.loads(found)["choice"]
    return output


# The page


def test_a_front_that_is_too_long_is_thinned_evenly_and_chosen_from_as_a_whole() -> None:
    text = page_of({"s": long_front(1201)})
    output = given_to_the_script(text)
    assert len(output["points"]) == 1201
    assert output["lower"] == [False, True]
    listed = [place for place, point in enumerate(output["points"]) if point[3] is not None]
    assert (len(listed), listed[0], listed[-1]) == (500, 0, 1200)
    assert set(np.diff(listed)) == {2, 3}
    assert "701 more points of the fronts, evenly spread, are not listed" in text
    drawn = re.findall(r"<title>s?[^<]*accuracy ([0-9.]+)", text)
    assert (len(drawn), drawn[0], drawn[-1]) == (600, "0.100", "0.900")


def test_a_threshold_is_shown_so_that_it_gives_its_point() -> None:
    text = page_of({"s": points_of([[0.5, 0.1], [0.6, 0.2]])})
    assert ">0.3333333333333333</td>" in text
    assert "from 0.3333333333333333:" in text


def test_a_threshold_below_all_differs_from_one_above_all() -> None:
    given = Confidences.read([0, 1], {"m": [0.2, 0.8]})
    assert ">−∞</td>" in page_of({"s": solve(given, ["recall", "accuracy"], [-np.inf])})
    assert ">∞</td>" in page_of({"s": solve(given, ["recall", "accuracy"], [np.inf])})


def test_what_is_better_low_is_turned_on_both_axes_of_the_page_and_the_front_goes_in_steps() -> None:
    text = page_of({"s": points_of([[0.2, 0.5], [0.4, 0.1]], (LOW, "false_positive_rate"))})
    marks = re.search(r'<polyline[^>]* points="([^"]*)"', text)
    assert marks is not None
    numbers = [float(one) for one in marks[1].split()]
    (x0, y0), (x1, y1), (x2, y2) = zip(numbers[::2], numbers[1::2], strict=True)
    assert x0 > x2  # 0.1 stands right of 0.5
    assert y0 > y2  # 0.2 stands above 0.4
    assert (x1, y1) == (x2, y0)  # between the two there is what the first offers


def test_names_are_cleaned_wherever_the_page_shows_them() -> None:
    hostile = "a\u202eb</script><b>"
    points = points_of([[0.5, 0.1], [0.6, 0.2]], model=hostile)
    named = tuple(
        Objective(one.metric, one.disparity, one.by, name=hostile + one.metric) for one in points.objectives[:1]
    )
    text = page_of(
        {hostile: Tradeoff(**{**vars(points), "objectives": (*named, points.objectives[1]), "system": hostile})}
    )
    assert "\u202e" not in unescape(text)
    assert "</script><b>" not in text


def test_a_page_of_no_system_or_of_other_objectives_is_refused() -> None:
    one, other = points_of([[0.5, 0.1]]), points_of([[0.5, 0.1]], ("accuracy", "recall"))
    for made in (page_of, matplotlib_figures.pareto):
        with pytest.raises(SpecError, match="no system to compare"):
            made({})
        with pytest.raises(SpecError, match="other has other objectives than"):
            made({"one": one, "other": other})


@pytest.mark.slow
def test_a_page_of_very_many_points_embeds_some_evenly_and_says_so() -> None:
    rng = np.random.default_rng(2)
    truth, n = rng.random(4000) < 0.4, 15_000
    by = {"g": rng.integers(0, 40, 4000).astype(str)}
    given = Confidences.read(truth, {"m": truth + rng.normal(size=4000)}, by)
    points = replace(long_front(n), confidences=given, threshold=np.linspace(-1, 2, n))
    text = page_of({"s": points})
    assert len(text) < 3_000_000
    output = given_to_the_script(text)["points"]
    assert 10_000 <= len(output) <= 10_500
    assert (output[0][2], output[-1][2]) == ("-1", "2")
    assert f"are not listed; the best is chosen from {len(output):,} of all 15,000 points" in text
    rates = [each for point in output if point[5] for each in point[5]]
    assert 100 < len(rates) <= 12_000
    assert "Of many groups those with the 12 lowest and highest rates are shown" in text


def test_a_page_shades_the_area_of_each_front_and_says_what_it_means() -> None:
    points, _ = banded()
    text = page_of({"one": points, "two": replace(points, ends=None)})
    assert len(re.findall(r'<path class="area s0"', text)) == 1
    assert '<path class="area s1"' not in text
    assert "where its front may lie" in text
    assert "95 % of such bands hold for all points of a model at once" in text
    without = page_of({"two": replace(points, ends=None)})
    assert "Shaded" not in without
    assert "where its front may lie" not in without


@pytest.mark.parametrize(("extra", "planes", "parallel"), [(0, 1, 0), (1, 2, 0), (2, 3, 1)])
def test_a_page_has_a_plane_for_each_further_objective_and_of_many_parallel_axes(
    extra: int, planes: int, parallel: int
) -> None:
    points, _ = banded(extra=extra)
    text = page_of({"s": points})
    assert len(re.findall(r"<figcaption>accuracy against ", text)) == planes
    assert len(re.findall(r"<figcaption>All objectives", text)) == parallel
    assert len(re.findall(r'<path class="area s0"', text)) == planes
    front = len(points.front())
    assert len(re.findall(r'<polyline class="line s0" points="[^"]*"><title>', text)) == parallel * front


def test_a_radar_in_the_page_tells_the_area_of_each_system_in_words() -> None:
    points, _ = banded()
    found = compare_systems({"one": points, "none": points.take(np.array([], int))})
    output = f"area: one {found['one']['area']:.3f}"
    text = page_of({"one": points, "none": points.take(np.array([], int))})
    assert f'aria-label="Radar of indicators from 0 to 1; {output}"' in text
    assert "<title>one: hypervolume" in text
    assert "Radar" not in page_of({"none": points.take(np.array([], int))})


def test_a_page_of_one_objective_lists_the_best_and_trades_nothing() -> None:
    points, given = banded()
    text = page_of({"s": solve(given, ["accuracy"], 9).with_intervals()})
    assert "There is one objective, so nothing is traded" in text
    assert "Next to each value: its ends. The ends are pointwise intervals" in text
    assert "<svg" not in text.replace(asset("report.js"), "")
    assert "Each dot" not in text
    assert points.objectives[0].name in text


def test_rates_of_groups_are_in_the_page_for_the_best_point_without_script_and_for_each_to_choose() -> None:
    truth, sure = [0, 1, 1, 1, 1, 0, 0, 0], [0.1, 0.7, 0.2, 0.9, 0.9, 0.12, 0.4, 0.45]
    given = Confidences.read(truth, {"m": sure}, {"g": ["<i>"] * 3 + ["b"] * 5})
    points = solve(given, ["accuracy", "recall difference by g", "matthews_correlation min by g"], [0.5, 0.15])
    text = page_of({"s": points})
    assert "Rates of groups: <bdi>s · m · 0.5</bdi>" in text
    assert "recall by g (should be equal)" in text
    assert "matthews correlation by g (the lowest counts)" in text
    low, high = wilson(np.array([1]), np.array([2]), 0.95)
    shown = re.findall(r'<tr><th scope="row"><bdi>(.*?)</bdi></th>.*?value">(.*?)</td><td>(.*?)</td><td>(.*?)<', text)
    assert shown[0] == ("&lt;i&gt;", "0.500", f"{low[0]:.3f} to {high[0]:.3f}", "1 of 2")
    assert shown[1][0::3] == ("b", "2 of 2")
    assert shown[3][3] == "5"
    [best, other] = sorted(given_to_the_script(text)["points"], key=lambda point: -point[4][0])
    assert best[5][0][0][:3] == ["<i>", "1 of 2", "0.500"]
    assert best[5][0][0][4][:2] == [0.0, 50.0]
    assert best[5][1][0][4][0] == 50.0  # 0 of -1 to 1
    assert other[5][0][0][2] == "1.000"
    assert "Rates of groups:" not in page_of({"s": replace(points, confidences=None)})


def test_a_rate_without_rows_is_none_and_has_no_bar() -> None:
    given = Confidences.read([0, 1, 0], {"m": [0.1, 0.7, 0.6]}, {"g": ["a", "a", "b"]})
    text = page_of({"s": solve(given, ["accuracy", "recall difference by g"], [0.5], "zero")})
    assert '<bdi>b</bdi></th><td class="chart"></td><td class="value">–</td><td></td><td>0 of 0</td>' in text


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        yield tab


@pytest.fixture
def opened(tab: Any, tmp_path: Path) -> Iterator[Callable[[dict[str, Tradeoff]], Any]]:
    def page(systems: dict[str, Tradeoff]) -> Any:
        file = tmp_path / "page.html"
        file.write_text(page_of(systems))
        tab.goto(file.as_uri())
        tab.wait_for_selector(".picked-point")
        return tab

    with watch(tab):
        yield page


def test_the_script_picks_what_pick_does_also_of_points_that_are_not_listed(opened: Any) -> None:
    wanted = ("recall", "accuracy", "precision")
    tied = [[0.9, 0.5, 0.6], [0.9, 0.6, 0.5], [0.9, 0.6, 0.5], [0.5, 0.9, 0.1]]
    near = [[0.3, 0.6, 0.5], [0.1 + 0.2, 0.5, 0.6]]  # by rounding alone the second were the better one
    cases = [
        (long_front(1201), {"1": "0.3005"}, [f"{LOW} <= 0.3005"]),
        (points_of(tied, wanted), {}, []),
        (points_of(near, wanted), {}, []),
        (points_of(near, wanted), {"0": repr(0.1 + 0.2)}, [f"recall >= {0.1 + 0.2}"]),
    ]
    for points, limits, where in cases:
        page = opened({"s": points})
        for place, limit in limits.items():
            page.fill(f"#limits-0-{place}", limit)
        pick = points.pick(points.objectives[0].name, where)
        shown = page.text_content(".picked-point")
        assert shown == f"m · {float(pick.threshold[0])!r}".removesuffix(".0")


@pytest.mark.parametrize(
    ("text", "same"), [("0,3", "0.3"), (",3", "0.3"), ("30 %", "0.3"), (" .3 ", "0.3"), ("3e-1", "0.3"), ("−1", "-1")]
)
def test_limits_are_read_as_people_write_them(opened: Any, text: str, same: str) -> None:
    page = opened({"s": long_front(11)})
    output = []
    for written in (text, same):
        page.get_by_role("textbox", name=f"{LOW} at most").fill(written)
        output.append(page.text_content(".picked-point"))
    assert output[0] == output[1]
    assert page.get_by_role("alert").count() == 0


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("1,000", "“1,000” may be 1.000 or 1000: write one of these."),
        ("0.1.2", "“0.1.2” is no number: write it as in 0.05."),
        ("low", "“low” is no number: write it as in 0.05."),
    ],
)
def test_a_limit_that_is_no_number_is_reported_and_nothing_is_chosen(opened: Any, text: str, output: str) -> None:
    page = opened({"s": long_front(11)})
    field = page.get_by_role("textbox", name="accuracy at least")
    field.fill(text)
    assert page.get_by_role("alert").text_content() == output
    assert field.get_attribute("aria-invalid") == "true"
    assert page.locator("tr.chosen").count() == 0
    field.fill("")
    assert page.get_by_role("alert").count() == 0
    assert field.get_attribute("aria-invalid") == "false"
    assert page.locator("tr.chosen").count() == 1


@pytest.mark.slow
def test_the_script_shows_the_rates_of_what_is_chosen_as_the_page_does_without_it(opened: Any) -> None:
    points, _ = banded()
    page = opened({"s": points, "others": replace(points, confidences=None, value=points.value * 0.9)})
    drawn_by_script = page.locator("table.rates tbody").first.inner_html()
    first = re.search(r'small rates".*?<tbody>(.*?)</tbody>', page_of({"s": points}), re.DOTALL)
    assert first is not None
    assert normal(drawn_by_script) == normal(first[1])
    page.get_by_role("textbox", name=f"{LOW} at most").fill("0")
    chosen = points.front().pick("accuracy", [f"{LOW} <= 0"])
    assert (
        page.text_content(".picked-point") == f"s · {chosen.models[chosen.model[0]]} · {float(chosen.threshold[0])!r}"
    )
    page.get_by_role("textbox", name="accuracy at least").fill("2")
    assert page.locator("table.rates tbody tr").count() == 0


def test_points_are_sorted_up_then_down_then_as_they_were(opened: Any) -> None:
    page = opened({"s": long_front(9)})
    head = page.locator("table.points th button", has_text="accuracy").first
    cells = page.locator("table.points tbody tr td:nth-child(3)")
    usual = cells.all_inner_texts()
    orders = []
    for _ in range(3):
        head.click()
        orders.append((cells.all_inner_texts(), head.locator("..").get_attribute("aria-sort")))
    up = sorted(usual, key=float)
    assert orders == [(up, "ascending"), (up[::-1], "descending"), (usual, None)]


def normal(markup: str) -> str:
    """Markup without what a browser writes otherwise."""
    return re.sub(r"\s*(/>|></rect>|></line>)", ">", markup).replace(' class=""', "").replace(".0", "")


# Pictures


def drawn(systems: dict[str, Tradeoff]) -> Any:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    return matplotlib_figures.pareto(systems)


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_pictures_take_names_as_they_are(tmp_path: Path, objectives: int) -> None:
    wanted = ("accuracy", r"recall difference by $x_\q$", "recall", "precision")[:objectives]
    points = points_of(np.array([[0.5, 0.1, 0.3, 0.4], [0.6, 0.2, 0.2, 0.1]])[:, :objectives], wanted)
    figure = drawn({r"$x_\q$": points, "_base": points})
    matplotlib_figures.save(figure, tmp_path / "front.svg")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [r"$x_\q$", "_base"]


def test_a_radar_takes_names_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    found = dict.fromkeys(("relative_onvg", "onvgr", "ud", "as", "hv"), 0.5)
    figure = matplotlib_figures.radar({r"$x_\q$": found, "_base": found})
    matplotlib_figures.save(figure, tmp_path / "radar.svg")
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == [r"$x_\q$ (area 0.25)", "_base (area 0.25)"]


def test_what_is_better_low_is_turned_on_both_axes_of_a_picture() -> None:
    ax = drawn({"s": points_of([[0.2, 0.5], [0.4, 0.1]], (LOW, "false_positive_rate"))}).axes[0]
    assert ax.xaxis_inverted()
    assert ax.yaxis_inverted()


def test_rates_of_groups_reach_over_the_range_of_their_metric(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    given = Confidences.read([0, 1, 0, 1], {"m": [0.1, 0.7, 0.6, 0.9]}, {"g": ["$x_\\q$", "b", "$x_\\q$", "b"]})
    figure = matplotlib_figures.rates(solve(given, ["matthews_correlation difference by g"], [0.5]), given)
    matplotlib_figures.save(figure, tmp_path / "rates.svg")
    assert figure.axes[0].get_ylim() == (-1, 1)
    with pytest.raises(SpecError, match="rates: confidence=1 must lie between 0 and 1"):
        matplotlib_figures.rates(solve(given, ["recall difference by g"], [0.5]), given, 1)


def banded(n: int = 60, seed: int = 5, extra: int = 0) -> tuple[Tradeoff, Confidences]:
    """Points with bands, and the rows they come from."""
    rng = np.random.default_rng(seed)
    truth, g = rng.random(n) < 0.5, rng.choice(["a", "b"], n)
    given = Confidences.read(truth, {"m": truth + rng.normal(size=n), "o": truth + rng.normal(size=n)}, {"g": g})
    wanted = ["accuracy", LOW, "recall", "specificity min by g"][: 2 + extra]
    return solve(given, wanted, np.linspace(-1, 2, 12)).with_bands(replicates=50), given


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(i, marks=pytest.mark.slow) for i in range(4, 20))])
def test_the_area_of_a_front_holds_the_whole_front_wherever_each_point_lies_between_its_ends(seed: int) -> None:
    """Points that look beaten reach farther than those that do not, and may truly be on the front."""
    path = pytest.importorskip("matplotlib.path", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    rng = np.random.default_rng(seed)
    points = points_of(rng.random((12, 2)))
    low, high = (points.value + sign * 0.4 * rng.random(points.value.shape) for sign in (-1, 1))
    area = path.Path(area_of_front(replace(points, ends=IntervalEnds(points.value, low, high)), 1, 0))
    for _ in range(200):
        share = rng.choice([0, 1, rng.random()], points.value.shape)  # at their ends it is the most extreme
        there = replace(points, value=low + share * (high - low)).front().value[:, ::-1]
        near = [area.contains_points(there, radius=radius) for radius in (1e-9, -1e-9)]
        assert np.any(near, axis=0).all()


def test_the_area_of_a_front_reaches_as_far_as_a_point_that_looks_dominated() -> None:
    points = points_of([[0.8, 0.2], [0.79, 0.3]])
    reach = np.array([[0.05, 0.05], [0.1, 0.1]])
    ends = IntervalEnds(points.value, points.value - reach, points.value + reach)
    corners = area_of_front(replace(points, ends=ends), 1, 0)
    assert max(x for x, _ in corners) == pytest.approx(0.4)
    assert max(y for _, y in corners) == pytest.approx(0.89)


def test_the_area_of_one_point_is_what_lies_between_its_ends() -> None:
    points = points_of([[0.5, 0.3]])
    ends = IntervalEnds(points.value, np.array([[0.4, 0.1]]), np.array([[0.7, 0.35]]))
    corners = area_of_front(replace(points, ends=ends), 1, 0)
    assert set(corners) == {(0.1, 0.4), (0.1, 0.7), (0.35, 0.7), (0.35, 0.4)}
    assert area_of_front(points_of(np.empty((0, 2))), 1, 0) == []


def test_a_value_without_an_interval_is_taken_as_it_is() -> None:
    points = points_of([[0.5, 0.3]])
    ends = IntervalEnds(points.value, np.array([[0.4, np.nan]]), np.array([[0.7, np.nan]]))
    low, high = ends_of(replace(points, ends=ends))
    assert (low.tolist(), high.tolist()) == ([[0.4, 0.3]], [[0.7, 0.3]])
    assert not has_ends(replace(points, ends=IntervalEnds(points.value, *[np.full((1, 2), np.nan)] * 2)))


@pytest.mark.parametrize(
    ("extra", "shown"), [(0, "between the fronts of all worst"), (1, "Bars: between"), (2, "Bars: be")]
)
def test_pictures_show_bands_and_say_what_they_mean(tmp_path: Path, extra: int, shown: str) -> None:
    points, _ = banded(extra=extra)
    with_bands, without = drawn({"s": points}), drawn({"s": replace(points, ends=None)})
    matplotlib_figures.save(with_bands, tmp_path / "bands.svg")
    assert shown in with_bands.get_supxlabel().replace("\n", " ")
    assert "95 % of such bands hold for all points" in with_bands.get_supxlabel().replace("\n", " ")
    assert without.get_supxlabel() == ""
    many, few = (len(figure.axes[0].get_children()) for figure in (with_bands, without))
    assert many > few
    output = drawn({"s": points.with_intervals()}).get_supxlabel().replace("\n", " ")
    assert "pointwise intervals, and do not hold for all points at once" in output


def test_what_bands_and_intervals_in_one_figure_are_explained_for_each() -> None:
    points, _ = banded()
    output = describe_ends({"one": points, "two": points.with_intervals(), "none": replace(points, ends=None)})
    assert "one: In each objective, 95 %" in output
    assert "two: The ends are pointwise intervals" in output
    assert "none" not in output


def test_what_cannot_be_drawn_is_reported_in_a_sentence() -> None:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    points, given = banded()
    empty = points.take(np.array([], int))
    found = compare_systems({"s": points})
    for made, output in [
        (lambda: matplotlib_figures.radar({}), "there are no systems"),
        (
            lambda: matplotlib_figures.radar({"s": points.indicators()}),
            "s has no indicator relative_onvg; use `compare_systems`",
        ),
        (
            lambda: matplotlib_figures.radar(compare_systems({"s": empty})),
            "s has no points on its front, so relative_onvg, ",
        ),
        (
            lambda: matplotlib_figures.radar(found, ("hv", "ud")),
            "needs three indicators or more as axes, and there are 2",
        ),
        (lambda: matplotlib_figures.pareto({"s": empty}), "s has no point with all values"),
        (
            lambda: matplotlib_figures.pareto({"s": points_of([[0.5]], ("recall",))}),
            "two objectives or more, and recall is the",
        ),
        (lambda: matplotlib_figures.rates(points, given), "one point, not 24"),
        (lambda: matplotlib_figures.rates(empty, given), "one point, not 0"),
        (
            lambda: matplotlib_figures.rates(points.take(np.array([0])), Confidences.read([0, 1], {"x": [0, 1]})),
            "no confidences of the model 'm'; there are: x",
        ),
    ]:
        with pytest.raises(SpecError, match=output):
            made()


def test_bars_of_rates_tell_the_rows_they_rest_on() -> None:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    truth, sure, g = [0, 1, 1, 1, 1], [0.1, 0.7, 0.2, 0.9, 0.9], list("aaabb")
    given = Confidences.read(truth, {"m": sure}, {"g": g})
    wanted = ["recall difference by g", "equalized_odds difference by g", "f_beta min by g"]
    recall, false_positives, f = matplotlib_figures.rates(solve(given, wanted, [0.5]), given).axes
    assert [label.get_text() for label in recall.get_xticklabels()] == ["a\n1 of 2", "b\n2 of 2"]
    assert [label.get_text() for label in false_positives.get_xticklabels()] == ["a\n0 of 1", "b\n0 of 0"]
    assert [label.get_text() for label in f.get_xticklabels()] == ["a\n3", "b\n2"]
    assert recall.get_title() == "recall by g\n(should be equal)"
    assert f.get_title() == "f beta by g\n(the lowest counts)"


def variants_of(n: int, objectives: int = 2) -> Tradeoff:
    """Variants without thresholds, of which only the last is on the front."""
    wanted = tuple(map(Objective.parse, ("accuracy", "recall", "specificity", "precision")[:objectives]))
    value = np.linspace(0.2, 0.8, n)[:, np.newaxis] * np.ones(objectives)
    names = tuple(f"prompt {number}" for number in range(n))
    return Tradeoff(wanted, names, np.arange(n), np.full(n, np.nan), value, np.zeros(n, bool))


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_few_variants_label_their_points_by_name_in_page_and_picture(objectives: int) -> None:
    points = variants_of(3, objectives)
    text = page_of({"bots": points})
    for name in points.models:
        assert re.search(rf'<text class="tick name [^>]*>{name}</text>', text)
    texts = [each.get_text().strip() for each in drawn({"bots": points}).axes[0].texts]
    assert sorted(texts) == ["prompt 0", "prompt 1", "prompt 2"]


def test_more_variants_are_labelled_by_numbers_with_a_key_and_very_many_do_not() -> None:
    text = page_of({"bots": variants_of(20)})
    assert ">20</text>" in text
    assert "By number: 1 prompt 0, 2 prompt 1," in text
    assert "20 prompt 19." in drawn({"bots": variants_of(20)}).get_supxlabel().replace("\n", " ")
    assert "tick name" not in page_of({"bots": variants_of(61)})


def test_points_at_thresholds_have_no_labels() -> None:
    assert "tick name" not in page_of({"s": points_of([[0.5, 0.1], [0.6, 0.2]])})


def test_a_variant_is_called_without_a_threshold() -> None:
    output = given_to_the_script(page_of({"bots": variants_of(2)}))
    assert [point[2] for point in output["points"]] == [""]


def test_dominated_variants_are_seen_on_parallel_axes() -> None:
    points = variants_of(3, 4)
    assert page_of({"bots": points}).count('<polyline class="line s0 beaten"') == 2
    pale = [line.get_alpha() for line in drawn({"bots": points}).axes[0].lines if line.get_linestyle() == "--"]
    assert pale == [0.5, 0.5]


def test_three_objectives_are_planes_side_by_side_with_titles_in_words() -> None:
    points = solve(Confidences.read([0, 1, 0, 1], {"m": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")}), PLANES)
    axes = drawn({"s": points.with_intervals()}).axes
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in axes] == [
        ("false positive rate\n(lower is better)", "accuracy\n(higher is better)"),
        ("equalized odds difference by sex\n(lower is better)", "accuracy\n(higher is better)"),
        (
            "equalized odds difference by sex\n(lower is better)",
            "false positive rate\n(lower is better)",
        ),
    ]
    assert {ax.name for ax in axes} == {"rectilinear"}


PLANES = ["accuracy", "false_positive_rate", "equalized_odds difference by sex"]
