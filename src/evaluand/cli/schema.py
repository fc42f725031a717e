"""`evaluand schema`: the form of experiment files and of stored tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from evaluand.cli.options import json_option
from evaluand.cli.output import print_json, show

if TYPE_CHECKING:
    import pyarrow as pa

EXPERIMENT = "experiment"
TABLES = ("examples", "responses", "spans", "scores", "metrics")

_EXAMPLES = """\b
Examples:
  evaluand schema > experiment.schema.json
  evaluand schema responses
  evaluand schema scores --json
"""


@click.command("schema", epilog=_EXAMPLES)
@click.argument("what", type=click.Choice([EXPERIMENT, *TABLES]), default=EXPERIMENT, metavar="[experiment|TABLE]")
@json_option
def command(what: str, as_json: bool) -> None:
    """Print the JSON Schema of experiment files, with every installed kind, or the columns of a table.

    TABLE is examples, responses, spans, scores or metrics. Datasets and scorers add columns of their own to examples
    and scores. The schema of experiment files is JSON in any case.
    """
    if what == EXPERIMENT:
        from evaluand.experiment import json_schema

        return print_json(json_schema())
    columns = list(_columns(_schema(what)))
    if as_json:
        return print_json({"table": what, "columns": columns})
    from rich.table import Table

    table = Table("column", "type", "may be null", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        kind = f"{column['type']} (JSON)" if column["json"] else column["type"]
        table.add_row(column["name"], kind, "yes" if column["nullable"] else "no")
    show(table)


def _schema(table: str) -> pa.Schema:
    import pyarrow as pa

    from evaluand import rows

    if table == "examples":
        return pa.schema([pa.field(rows.INDEX, pa.int64(), nullable=False), pa.field(rows.DIGEST, pa.binary(16))])
    if table == "scores":
        return rows.scores_schema({})
    return {"responses": rows.RESPONSES, "spans": rows.SPANS, "metrics": rows.METRICS}[table]


def _columns(schema: pa.Schema) -> Iterator[dict[str, Any]]:
    from evaluand.rows import is_json

    for field in schema:
        yield {"name": field.name, "type": str(field.type), "nullable": field.nullable, "json": is_json(field)}
