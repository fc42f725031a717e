"""Trade-offs in a page and in pictures: what is shown of which points, and what is chosen among them."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluand.errors import SpecError
from evaluand.report import tradeoffs
from evaluand.report.tradeoff_facts import area_of_front, ends_of, has_ends, told_of_ends
from evaluand.report.tradeoff_page import write_page
from evaluand.tradeoff import Confidences, Objective, Tradeoff, compared, solve
from evaluand.tradeoff.ends import Ends

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
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
    found = re.search(r'<script type="application/json" id="front">(.*?)</script>', text)
    assert found is not None
    told: dict[str, Any] = json.loads(found[1])
    return told


# The page


def test_a_front_that_is_too_long_is_thinned_evenly_and_chosen_from_as_a_whole() -> None:
    text = page_of({"s": long_front(1201)})
    told = given_to_the_script(text)
    assert len(told["points"]) == 1201
    assert told["lower"] == [False, True]
    listed = [place for place, (_, row, _) in enumerate(told["points"]) if row is not None]
    assert (len(listed), listed[0], listed[-1]) == (500, 0, 1200)
    assert set(np.diff(listed)) == {2, 3}
    assert "701 more points of the fronts, evenly among those above, are not listed" in text
    drawn = re.findall(r"<title>s?[^<]*accuracy ([0-9.]+)", text)
    assert (len(drawn), drawn[0], drawn[-1]) == (600, "0.100", "0.900")


def test_a_threshold_is_shown_so_that_it_gives_its_point() -> None:
    text = page_of({"s": points_of([[0.5, 0.1], [0.6, 0.2]])})
    assert ">0.3333333333333333</td>" in text
    assert "from 0.3333333333333333:" in text


def test_a_threshold_below_all_is_told_from_one_above_all() -> None:
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
    for made in (page_of, tradeoffs.pareto):
        with pytest.raises(SpecError, match="no system is given"):
            made({})
        with pytest.raises(SpecError, match="other has other objectives than"):
            made({"one": one, "other": other})


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium, or $CHROMIUM")
def test_the_script_picks_what_pick_does_also_of_points_that_are_not_listed(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install evaluand[browser]")
    wanted = ("recall", "accuracy", "precision")
    tied = [[0.9, 0.5, 0.6], [0.9, 0.6, 0.5], [0.9, 0.6, 0.5], [0.5, 0.9, 0.1]]
    cases = [(long_front(1201), {"1": "0.3005"}, [f"{LOW} <= 0.3005"]), (points_of(tied, wanted), {}, [])]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for points, limits, where in cases:
            file = tmp_path / "page.html"
            file.write_text(page_of({"s": points}))
            page = browser.new_page()
            page.goto(file.as_uri())
            for place, limit in limits.items():
                page.fill(f'[data-limit="{place}"]', limit)
            pick = points.pick(points.objectives[0].name, where)
            shown = page.text_content("#chosen")
            assert shown.startswith(f"s · m · {float(pick.threshold[0])!r}".removesuffix(".0"))
            page.close()
        browser.close()


# Pictures


def drawn(systems: dict[str, Tradeoff]) -> Any:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    return tradeoffs.pareto(systems)


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_pictures_take_names_as_they_are(tmp_path: Path, objectives: int) -> None:
    wanted = ("accuracy", r"recall difference by $x_\q$", "recall", "precision")[:objectives]
    points = points_of(np.array([[0.5, 0.1, 0.3, 0.4], [0.6, 0.2, 0.2, 0.1]])[:, :objectives], wanted)
    figure = drawn({r"$x_\q$": points, "_base": points})
    tradeoffs.save(figure, tmp_path / "front.svg")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [r"$x_\q$", "_base"]


def test_a_radar_takes_names_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    found = dict.fromkeys(("relative_onvg", "onvgr", "ud", "as", "hv"), 0.5)
    figure = tradeoffs.radar({r"$x_\q$": found, "_base": found})
    tradeoffs.save(figure, tmp_path / "radar.svg")
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == [r"$x_\q$ (area 0.25)", "_base (area 0.25)"]


def test_what_is_better_low_is_turned_on_both_axes_of_a_picture() -> None:
    ax = drawn({"s": points_of([[0.2, 0.5], [0.4, 0.1]], (LOW, "false_positive_rate"))}).axes[0]
    assert ax.xaxis_inverted()
    assert ax.yaxis_inverted()


def test_rates_of_groups_reach_over_the_range_of_their_metric(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    given = Confidences.read([0, 1, 0, 1], {"m": [0.1, 0.7, 0.6, 0.9]}, {"g": ["$x_\\q$", "b", "$x_\\q$", "b"]})
    figure = tradeoffs.rates(solve(given, ["matthews_correlation difference by g"], [0.5]), given)
    tradeoffs.save(figure, tmp_path / "rates.svg")
    assert figure.axes[0].get_ylim() == (-1, 1)
    with pytest.raises(SpecError, match="rates: confidence=1 must lie between 0 and 1"):
        tradeoffs.rates(solve(given, ["recall difference by g"], [0.5]), given, 1)


def banded(n: int = 60, seed: int = 5, extra: int = 0) -> tuple[Tradeoff, Confidences]:
    """Points with bands, and the rows they come from."""
    rng = np.random.default_rng(seed)
    truth, g = rng.random(n) < 0.5, rng.choice(["a", "b"], n)
    given = Confidences.read(truth, {"m": truth + rng.normal(size=n), "o": truth + rng.normal(size=n)}, {"g": g})
    wanted = ["accuracy", LOW, "recall", "specificity min by g"][: 2 + extra]
    return solve(given, wanted, np.linspace(-1, 2, 12)).with_bands(replicates=50), given


def test_the_area_of_a_front_holds_the_front_wherever_each_point_lies_between_its_ends() -> None:
    path = pytest.importorskip("matplotlib.path", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    points, _ = banded()
    assert points.ends is not None
    area = path.Path(area_of_front(points, 1, 0))
    rng = np.random.default_rng(1)
    for _ in range(50):
        drawn = points.ends.low + rng.random(points.value.shape) * (points.ends.high - points.ends.low)
        there = replace(points, value=drawn).front()
        far = points.front().ends
        assert far is not None
        seen = there.value[(there.value[:, 0] >= far.low[:, 0].min()) & (there.value[:, 1] <= far.high[:, 1].max())]
        assert len(seen)
        assert (
            area.contains_points(seen[:, ::-1], radius=1e-9).all()
            or area.contains_points(seen[:, ::-1], radius=-1e-9).all()
        )


def test_the_area_of_one_point_is_what_lies_between_its_ends() -> None:
    points = points_of([[0.5, 0.3]])
    ends = Ends(points.value, np.array([[0.4, 0.1]]), np.array([[0.7, 0.35]]))
    corners = area_of_front(replace(points, ends=ends), 1, 0)
    assert set(corners) == {(0.1, 0.4), (0.1, 0.7), (0.35, 0.7), (0.35, 0.4)}
    assert area_of_front(points_of(np.empty((0, 2))), 1, 0) == []


def test_a_value_without_an_interval_is_taken_as_it_is() -> None:
    points = points_of([[0.5, 0.3]])
    ends = Ends(points.value, np.array([[0.4, np.nan]]), np.array([[0.7, np.nan]]))
    low, high = ends_of(replace(points, ends=ends))
    assert (low.tolist(), high.tolist()) == ([[0.4, 0.3]], [[0.7, 0.3]])
    assert not has_ends(replace(points, ends=Ends(points.value, *[np.full((1, 2), np.nan)] * 2)))


@pytest.mark.parametrize(("extra", "shown"), [(0, "between the fronts if each"), (1, "Bars: between"), (2, "Bars: be")])
def test_pictures_show_bands_and_say_what_they_mean(tmp_path: Path, extra: int, shown: str) -> None:
    points, _ = banded(extra=extra)
    with_bands, without = drawn({"s": points}), drawn({"s": replace(points, ends=None)})
    tradeoffs.save(with_bands, tmp_path / "bands.svg")
    assert shown in with_bands.get_supxlabel().replace("\n", " ")
    assert "95 % of such bands hold for all points" in with_bands.get_supxlabel().replace("\n", " ")
    assert without.get_supxlabel() == ""
    many, few = (len(figure.axes[0].get_children()) for figure in (with_bands, without))
    assert many > few
    told = drawn({"s": points.with_intervals()}).get_supxlabel().replace("\n", " ")
    assert "the interval of each point by itself, and do not hold for all at once" in told


def test_what_bands_and_intervals_beside_each_other_are_is_said_of_each() -> None:
    points, _ = banded()
    told = told_of_ends({"one": points, "two": points.with_intervals(), "none": replace(points, ends=None)})
    assert "one: In each objective, 95 %" in told
    assert "two: The ends are the interval of each point by itself" in told
    assert "none" not in told


def test_what_cannot_be_drawn_is_told_in_a_sentence() -> None:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    points, given = banded()
    empty = points.taken(np.array([], int))
    found = compared({"s": points})
    for made, told in [
        (lambda: tradeoffs.radar({}), "no system is given"),
        (lambda: tradeoffs.radar({"s": points.indicators()}), "s has no indicator relative_onvg; take the indicators"),
        (lambda: tradeoffs.radar(compared({"s": empty})), "s has no points on its front, so relative_onvg, "),
        (lambda: tradeoffs.radar(found, ("hv", "ud")), "needs three indicators or more as axes, and there are 2"),
        (lambda: tradeoffs.pareto({"s": empty}), "s has no point whose values are all known"),
        (lambda: tradeoffs.pareto({"s": points_of([[0.5]], ("recall",))}), "two objectives or more, and recall is the"),
        (lambda: tradeoffs.rates(points, given), "those of one point, and 24 are given"),
        (lambda: tradeoffs.rates(empty, given), "those of one point, and 0 are given"),
        (
            lambda: tradeoffs.rates(points.taken(np.array([0])), Confidences.read([0, 1], {"x": [0, 1]})),
            "no confidences of the model 'm'; there are: x",
        ),
    ]:
        with pytest.raises(SpecError, match=told):
            made()


def test_bars_of_rates_tell_the_rows_they_rest_on() -> None:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'evaluand[plots]'")
    truth, sure, g = [0, 1, 1, 1, 1], [0.1, 0.7, 0.2, 0.9, 0.9], list("aaabb")
    given = Confidences.read(truth, {"m": sure}, {"g": g})
    wanted = ["recall difference by g", "equalized_odds difference by g", "f_beta min by g"]
    recall, false_positives, f = tradeoffs.rates(solve(given, wanted, [0.5]), given).axes
    assert [label.get_text() for label in recall.get_xticklabels()] == ["a\n1 of 2", "b\n2 of 2"]
    assert [label.get_text() for label in false_positives.get_xticklabels()] == ["a\n0 of 1", "b\n0 of 0"]
    assert [label.get_text() for label in f.get_xticklabels()] == ["a\n3", "b\n2"]
    assert recall.get_title() == "recall by g\n(wanted alike)"
    assert f.get_title() == "f beta by g\n(the least counts)"
