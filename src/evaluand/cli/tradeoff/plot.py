"""`evaluand tradeoff plot`: figures and pages of systems."""

from __future__ import annotations

from pathlib import Path

import click
from click import UsageError

from evaluand.cli.output import open_output
from evaluand.cli.tradeoff.options import (
    EXAMPLES,
    check_target,
    deduplicate_option,
    files_argument,
    force_option,
    names_option,
    stored_options,
)
from evaluand.cli.tradeoff.stored import Stored
from evaluand.cli.tradeoff.systems import add_bands, read_systems
from evaluand.report.html.tradeoff import write_page
from evaluand.report.text import safe
from evaluand.tradeoff.indicators import compare_systems


@click.command("plot", epilog=EXAMPLES)
@files_argument
@stored_options
@names_option
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A figure: .png, .svg or .pdf; or an interactive page: .html.",
)
@click.option("--kind", type=click.Choice(["pareto", "radar"]), help="The kind of figure.  [default: pareto]")
@click.option(
    "--scores",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The scores that the solutions of the same name were computed from, for bands around the fronts and rates of"
    " groups in a page; repeatable.",
)
@click.option("--hide-dominated", is_flag=True, help="Draw only the fronts, in a figure of points.")
@deduplicate_option
@force_option
def plot_command(
    files: tuple[Path, ...],
    stored: Stored,
    names: tuple[str, ...],
    out: Path,
    kind: str | None,
    scores: tuple[Path, ...],
    hide_dominated: bool,
    deduplicate: bool,
    force: bool,
) -> None:
    """Draw the points of systems and their fronts, or a radar chart of indicators; from files or from the store.

    Two metrics are drawn in a plane, three in space, more on parallel axes. Files of solutions have no intervals: with
    --scores the fronts get bands that hold for all points of a model at once, with 95 %; a page then also has the rates
    of groups, which `pick --rates` draws for one point. Stored models have both without it.
    """
    from evaluand.report import matplotlib_figures

    page = out.suffix.lower() == ".html"
    if page and (kind or hide_dominated):
        raise UsageError("--kind and --hide-dominated apply to figures; a page has all points and the indicators")
    if kind == "radar" and (hide_dominated or scores):
        raise UsageError("--hide-dominated and --scores apply to points, and a radar chart has none")
    check_target(out, [*files, *scores], force)
    systems = read_systems(files, stored, names, deduplicate)
    if kind != "radar":
        systems = add_bands(systems, scores)
    if page:
        with open_output(out) as file:
            write_page(out.stem, systems, file)
    elif kind == "radar":
        matplotlib_figures.save(matplotlib_figures.radar(compare_systems(systems)), out)
    else:
        matplotlib_figures.save(matplotlib_figures.pareto(systems, dominated=not hide_dominated), out)
    click.echo(f"written: {safe(str(out))}", err=True)
