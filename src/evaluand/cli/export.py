"""`evaluand export`: writes an artifact as one flat table, or in the format of another tool."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from click import UsageError

from evaluand.aggregation.aggregator import Aggregation
from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import complete_artifact, json_option, store_option, suggest_command, where_option
from evaluand.cli.output import open_output, print_json
from evaluand.cli.progress import show_notes
from evaluand.core import registry
from evaluand.core.errors import NotFound, SpecError, alternatives, nearest, warn
from evaluand.data.dataset import Dataset
from evaluand.data.formats.publishing import Form, publish
from evaluand.data.kind import DATASETS
from evaluand.engine.keyed_work import Artifact
from evaluand.evaluation.evaluator import Evaluation, newest_evaluation_of
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.exchange.exporter import GROUP, Exporter, Result
from evaluand.report.export import FORMATS, flat, list_tables, write_csv, write_jsonl, write_parquet
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.latex import metrics_latex
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.kinds import find_kind, kinds, singular
from evaluand.store.opening import open_store
from evaluand.store.store import Ref, caveats, resolve

_EXAMPLES = """\b
Examples:
  evaluand export arithmetic/mine > responses.csv
  evaluand export arithmetic/mine --table tidy -o scores.parquet
  evaluand export arithmetic/mine --status failed --format jsonl
  evaluand export arithmetic/mine --where 'topic == "sums" and duration > 1'
  evaluand export arithmetic -o metrics.csv
  evaluand export arithmetic --to latex > metrics.tex
  evaluand export arithmetic/mine --to inspect -o mine.json
  evaluand export arithmetic/mine --to lm_eval -o results
  evaluand export arithmetic/mine --to otel -o traces.jsonl
  evaluand export arithmetic/mine --to mlflow -o mlflow
  evaluand export judged --table ratings -o ratings.csv
  evaluand export questions -o published/croissant.json
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    artifact: str = argument(metavar="ID|NAME", shell_complete=complete_artifact)
    output: Path | None = option(
        "The file to write, or the folder of a format of several files; stdout by default.",
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="FILE",
    )
    form: str | None = option(
        "csv, jsonl, parquet or latex; or of another tool huggingface, inspect, lm_eval, mlflow, otel or wandb.  "
        "[default: from the suffix of FILE, else csv]",
        "--to",
        "--format",
        metavar="FORMAT",
        callback=lambda context, parameter, value: _check_format(value),
        shell_complete=lambda context, parameter, begun: [each for each in _list_formats() if each.startswith(begun)],
    )
    table: str | None = option(
        "responses, spans, examples, tidy, metrics, curves, matches, ratings, win_rates, … or the name of a scorer.",
        metavar="TABLE",
    )
    status: str | None = option("Only rows with this status: completed, failed, scored, …", metavar="STATUS")
    where: str | None = where_option
    raw: bool = option("Do not escape CSV cells that a spreadsheet would execute.")
    folder: Place = store_option
    as_json: bool = json_option


@make_command("export", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Write the rows of a run, an evaluation, an aggregation, matches, ratings, a card or a dataset as one flat table.

    A run has one row per call (responses), or its spans, or its examples; an evaluation one row per score (tidy),
    or those of one scorer; an aggregation its metrics; matches one row per match, as battles; ratings one row per
    system, or their win_rates, differences, parameters or bias; a dataset its examples; a recording its
    damaged_lines. If several artifacts share the name, the first that has the TABLE is taken.

    CSV is safe for spreadsheets: a text that begins with = + - @, a tab or a line break gets a leading ' (not with
    --raw). Values other than texts, numbers and booleans are JSON. Parquet preserves every value and type, so importing
    it gives the same run; CSV does not distinguish the text 1 from the number.

    LaTeX is for the values of an aggregation. Other tools read a run with its grades: `--to inspect` writes a log of
    Inspect AI, `--to otel` traces of OpenTelemetry in JSON lines; in the folder FILE, `--to lm_eval` writes
    results_*.json and samples_*.jsonl of the lm-evaluation-harness, `--to mlflow` a store of MLflow, `--to wandb` an
    offline run of Weights & Biases, `--to huggingface` the values for a model's repository on the Hub.

    If FILE is croissant.json or datapackage.json, the dataset of that name, or of a run, is written next to it, with
    its description as Croissant or as a Data Package.

    With --json, print a summary of what was written to FILE.
    """
    form, output = options.form, options.output
    output = None if output == Path("-") else output
    if options.as_json and output is None:
        raise UsageError("--json needs -o FILE; use --format jsonl for rows in JSON")
    if output is not None and output.name in _DESCRIPTIONS:
        if options.table or options.status or options.where or form or options.raw:
            raise UsageError(f"{output.name} describes a complete dataset; leave out the other options")
        return _publish(open_store(options.folder), options.artifact, output, options.as_json)
    form = form or _choose_format(output)
    if form in (*FORMATS, _LATEX) and output is not None and output.is_dir():
        raise UsageError(f"{output} is a folder; give -o FILE")
    if form not in FORMATS:
        if options.table or options.status or options.where or options.raw:
            raise UsageError(f"{form} has no choice of rows; leave out --table, --status, --where and --raw")
        return (_write_latex if form == _LATEX else _write_foreign)(
            open_store(options.folder), options.artifact, output, form, options.as_json
        )
    if form == "parquet" and output is None:
        raise UsageError("Parquet cannot be written to stdout; give -o FILE")
    store = open_store(options.folder)
    with show_notes(), open_output(output) as file:
        found = _find_artifact(store, options.artifact, options.table)
        batches = flat(*found, status=options.status, where=options.where)
        if form == "csv":
            written = write_csv(batches, file, raw=options.raw)
        else:
            written = write_jsonl(batches, file) if form == "jsonl" else write_parquet(batches, file)
    if options.as_json:
        print_json({"file": str(output), "format": form, "rows": written, "columns": batches.schema.names})
    elif output is not None:
        click.echo(f"{written:,} rows written to {safe(output)}", err=True)


_DESCRIPTIONS: Final[Mapping[str, Form]] = {"croissant.json": "croissant", "datapackage.json": "datapackage"}


def _publish(store: FolderStore, artifact: str, output: Path, as_json: bool) -> None:
    """Writes a dataset, or that of a run, with its description."""
    found = None
    for kind in (DATASETS, RUNS):
        with suppress(NotFound):
            found = found or _open_artifact(store, artifact, kind)
    if found is None:
        store.manifest(*resolve(store, artifact))  # raises the error about the name
        raise SpecError(f"{artifact!r} is neither a dataset nor a run, and has no examples to describe")
    dataset = found.dataset if isinstance(found, Run) else found
    assert isinstance(dataset, Dataset)
    with show_notes():
        path = publish(dataset, output.parent, _DESCRIPTIONS[output.name], name=dataset.name or artifact)
    if as_json:
        print_json({"file": str(path), "format": _DESCRIPTIONS[output.name], "rows": len(dataset)})
    else:
        click.echo(f"{len(dataset):,} rows written next to {safe(path)}", err=True)


def _write_latex(store: FolderStore, artifact: str, output: Path | None, form: str, as_json: bool) -> None:
    """Writes the values of an aggregation as a LaTeX table."""
    found = _open_artifact(store, artifact)
    if not isinstance(found, Aggregation):
        raise SpecError(f"{artifact!r} has no values of metrics; LaTeX is for an aggregation, see `evaluand list`")
    facts = metrics_facts(found)
    with open_output(output) as file:
        file.write(metrics_latex(facts).encode())
    _say_written(rows=len(facts), output=output, form=form, as_json=as_json)


def _say_written(*, rows: int, output: Path | None, form: str, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(output), "format": form, "rows": rows})
    elif output is not None:
        click.echo(f"{rows:,} rows written to {safe(output)}", err=True)


def _write_foreign(store: FolderStore, artifact: str, output: Path | None, form: str, as_json: bool) -> None:
    """Writes a run with its grades in the format of another tool."""
    if output is None:
        raise UsageError(f"{form} cannot be written to stdout; give -o FILE")
    exporter: Exporter = registry.find(GROUP, form)()
    if output.exists() and output.is_dir() != exporter.is_folder:
        raise UsageError(f"{output} is {'a file' if exporter.is_folder else 'a folder'}; give another -o")
    with show_notes():
        files = exporter.write(_find_result(store, artifact), output)
    if as_json:
        return print_json({"files": [str(file) for file in files], "format": form, "notes": exporter.notes})
    for note in exporter.notes:
        click.echo(f"note: {safe(note)}", err=True)
    click.echo(f"written: {', '.join(safe(file) for file in files)}", err=True)
    return None


def _find_result(store: FolderStore, artifact: str) -> Result:
    """A run with its grades; of a run alone those of its newest evaluation."""
    for kind in (EVALUATIONS, RUNS):
        with suppress(NotFound):
            found = _open_artifact(store, artifact, kind)
            assert isinstance(found, Evaluation | Run)
            if isinstance(found, Evaluation):
                return Result(found.read_run(), found)
            return Result(found, newest_evaluation_of(store, found.id))
    resolve(store, artifact)  # raises the error about an unknown name
    raise SpecError(f"{artifact!r} is neither a run nor an evaluation; name one, see `evaluand list evaluations`")


def _check_format(name: str | None) -> str | None:
    """A format by its name; `lm-eval` is `lm_eval`."""
    name = name and name.replace("-", "_")
    if name is None or name in (known := _list_formats()):
        return name
    raise click.BadParameter(f"no format is called {name!r}{alternatives(name, known)}")


def _list_formats() -> list[str]:
    return [*FORMATS, _LATEX, *registry.names(GROUP)]


_LATEX: Final = "latex"


def _choose_format(output: Path | None) -> str:
    if output is None or not output.suffix:
        return "csv"
    suffix = output.suffix[1:].lower()
    form = {"ndjson": "jsonl", "pq": "parquet", "tex": _LATEX}.get(suffix, suffix)
    if form not in (*FORMATS, _LATEX):
        raise UsageError(f"the suffix {output.suffix!r} is not a known format; give --to {' | '.join(FORMATS)}")
    return form


def _find_artifact(store: FolderStore, artifact: str, table: str | None) -> tuple[Any, str | None]:
    """The artifact and its table; of several with the same name, the first that has the table."""
    if table is None:
        return _open_artifact(store, artifact), None
    tables: list[str] = []
    for kind in (kind.name for kind in kinds() if kind.shown.is_table):
        with suppress(NotFound):
            found = _open_artifact(store, artifact, kind)
            if table in (known := list_tables(found)):
                return found, table
            tables += known
    if not tables:
        return _open_artifact(store, artifact), table
    raise SpecError(f"{artifact!r} has no table {table!r}{nearest(table, tables)}; its tables are {', '.join(tables)}")


def _open_artifact(store: FolderStore, name: str, kind: str | None = None) -> Any:
    kind, id = resolve(store, name, kind)
    if not store.is_sealed(kind, id):
        store.manifest(kind, id)  # raises the error about a missing one
        again = suggest_command("resume", id[:SHORT_ID], store.root)
        raise SpecError(f"{singular(kind)} {id} is not finished; run `{again}`, then export it")
    view = find_kind(kind).shown
    if not view.is_table:
        again = suggest_command("show", id[:SHORT_ID], store.root)
        raise SpecError(f"{singular(kind)} {id[:SHORT_ID]} is not one table; `{again} --json` writes all of it")
    for caveat in caveats(store, [(kind, id)]):
        warn(caveat)
    found = view.open(store, id)
    if isinstance(found, Artifact) and Ref(name, kind, id) in store.named(name):
        found.called = name
    return found
