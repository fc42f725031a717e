"""Trade-offs in a page and in pictures: what is shown of which points, and what is chosen among them."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluand.errors import SpecError
from evaluand.report import tradeoffs
from evaluand.report.tradeoff_page import write_page
from evaluand.tradeoff import Confidences, Objective, Tradeoff, solve

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
