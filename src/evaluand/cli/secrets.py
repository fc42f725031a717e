"""`evaluand secrets`: which environment variables experiment files may send to which hosts."""

from __future__ import annotations

import os

import click
from rich.table import Table

from evaluand.cli.command import argument, make_command
from evaluand.cli.options import json_option
from evaluand.cli.output import print_json, show
from evaluand.core.errors import NotFound
from evaluand.core.secret_hosts import (
    WELL_KNOWN,
    Host,
    check_name,
    permissions,
    read_settings,
    settings_file,
    write_settings,
)
from evaluand.report.text import safe

_EXAMPLES = """\b
Examples:
  evaluand secrets allow MODELS_TOKEN models.example
  evaluand secrets list
  evaluand secrets remove MODELS_TOKEN
"""


@click.group("secrets", epilog=_EXAMPLES)
def command() -> None:
    """Allow environment variables to be sent to hosts.

    An experiment file can name any variable and any host. A variable that a file names, in headers, a URL or as
    api_key, is sent only to hosts that you allow here, over https. Your permissions are in your own settings, never in
    a checkout or a store. Jobs without settings take EVALUAND_SECRETS="NAME=host,NAME=host".
    """


@make_command("allow", command, epilog="\b\nExamples:\n  evaluand secrets allow MODELS_TOKEN models.example:8443")
def allow(name: str = argument(metavar="NAME"), host: str = argument(metavar="HOST")) -> None:
    """Allow a variable to be sent to a host.

    An experiment file may then send the environment variable NAME to HOST.

    HOST is a name with an optional port and means https; http://HOST allows it without encryption. A host of this
    machine without a port (127.0.0.1, localhost) means all its ports.
    """
    hosts, allowed = read_settings(), Host.parse(host)
    known = hosts.setdefault(check_name(name), [])
    if allowed not in known:
        known.append(allowed)
        write_settings(hosts)
    click.echo(f"files may send {name} to {allowed}", err=True)


@make_command("remove", command, epilog="\b\nExamples:\n  evaluand secrets remove MODELS_TOKEN models.example:8443")
def remove(name: str = argument(metavar="NAME"), host: str | None = argument(metavar="[HOST]", required=False)) -> None:
    """Remove permissions of a variable.

    Experiment files may then no longer send the environment variable NAME to HOST, or to any host.
    """
    hosts = read_settings()
    known = hosts.get(check_name(name), [])
    removed = [one for one in known if host is None or one == Host.parse(host)]
    if not removed:
        fixed = "; the built-in one cannot be removed: unset the variable instead" if name in WELL_KNOWN else ""
        to = f" to {safe(host)}" if host is not None else ""
        raise NotFound(f"your settings do not allow {name}{to}{fixed}; `evaluand secrets list` shows what is allowed")
    write_settings(hosts | {name: [one for one in known if one not in removed]})
    click.echo(f"files may no longer send {name} to {', '.join(map(str, removed))}", err=True)


@make_command("list", command, epilog="\b\nExamples:\n  evaluand secrets list --json")
def list_(as_json: bool = json_option) -> None:
    """List the variables that may be sent."""
    listed = permissions()
    if as_json:
        rows = [
            {"name": one.name, "host": str(one.host), "source": one.source, "set": bool(os.environ.get(one.name))}
            for one in listed
        ]
        return print_json({"file": str(settings_file()), "permissions": rows})
    table = Table(box=None, pad_edge=False)
    for title in ("variable", "host", "from", "set"):
        table.add_column(title)
    for one in listed:
        table.add_row(one.name, str(one.host), one.source, "yes" if os.environ.get(one.name) else "no")
    return show(table)
