"""`evaluand workers`: the machines of a Ray cluster."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from evaluand.cli.command import make_command
from evaluand.cli.engines import address_option
from evaluand.cli.options import json_option
from evaluand.cli.output import print_json, show, stdout_to_stderr
from evaluand.report.text import safe

_EXAMPLES = """\b
Examples:
  evaluand workers
  evaluand workers --address head:6379 --json
"""


@make_command("workers", epilog=_EXAMPLES)
def command(address: str | None = address_option, as_json: bool = json_option) -> None:
    """Show the machines of a running Ray cluster, and how many workers each has room for.

    Start a cluster with `ray start --head` on one machine, and `ray start --address HEAD:6379` on the others.
    """
    from evaluand.engine.engines.ray import nodes  # Ray takes seconds to import

    with stdout_to_stderr():
        found = nodes(address or "auto")
    if as_json:
        return print_json([node._asdict() for node in found])
    table = Table(box=None, padding=(0, 2, 0, 0))
    for header in ("machine", "CPUs", "free", ""):
        table.add_column(header)
    for node in found:
        state = "" if node.is_alive else "lost"
        table.add_row(*map(Text, (safe(node.address), f"{node.cpus:g}", f"{node.free:g}", state)))
    return show(table)
