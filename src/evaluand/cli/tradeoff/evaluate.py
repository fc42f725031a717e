"""`evaluand tradeoff evaluate`: indicators of the fronts of systems."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from evaluand.cli.options import json_option
from evaluand.cli.output import print_json
from evaluand.cli.tradeoff.options import (
    EXAMPLES,
    check_form,
    deduplicate_option,
    files_argument,
    format_option,
    names_option,
    stored_options,
)
from evaluand.cli.tradeoff.output import print_table
from evaluand.cli.tradeoff.stored import Stored
from evaluand.cli.tradeoff.systems import read_systems
from evaluand.core.files.json import without_infinities
from evaluand.tradeoff.indicators import compare_systems


@click.command("evaluate", epilog=EXAMPLES)
@files_argument
@stored_options
@names_option
@deduplicate_option
@format_option
@json_option
def evaluate_command(
    files: tuple[Path, ...],
    stored: Stored,
    names: tuple[str, ...],
    deduplicate: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """Compare the fronts of systems by indicators, from files of solutions or from the store.

    hv hypervolume, ud uniformity, as and os average and overall spread, onvg points on the front (onvgr: share of all
    points, relative_onvg: share of the system with the most), area of the radar chart: higher is better. igd_plus and
    epsilon: how far a system falls short of the best of all systems together, lower is better.
    """
    check_form(form, as_json)
    indicators = compare_systems(read_systems(files, stored, names, deduplicate))
    if as_json:
        return print_json({"indicators": without_infinities(indicators)})
    rows = [(name, *(_cell(key, one[key]) for key in _INDICATORS)) for name, one in indicators.items()]
    print_table(("system", *_INDICATORS), rows, form)


def _cell(indicator: str, value: float) -> float:
    return int(value) if indicator in _COUNTS else value


_INDICATORS: Final = ("hv", "ud", "as", "os", "onvg", "onvgr", "relative_onvg", "area", "igd_plus", "epsilon")
_COUNTS: Final = ("onvg",)
