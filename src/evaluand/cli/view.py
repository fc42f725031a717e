"""`evaluand view`: serves the page on a store to a browser."""

import webbrowser
from pathlib import Path

import click

from evaluand.cli.options import store_option
from evaluand.core.errors import SpecError
from evaluand.report.text import safe
from evaluand.store.directory import DirectoryStore

_EXAMPLES = """\b
Examples:
  evaluand view
  evaluand view --port 8000 --no-browser
"""


@click.command("view", epilog=_EXAMPLES)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on.  [default: a free one]")
@click.option("--no-browser", is_flag=True, help="Print the link, and open no browser.")
@store_option
def command(port: int, no_browser: bool, folder: Path) -> None:
    """Open what is stored in a browser: runs side by side, with their rows, traces and comparisons.

    The page is served to this machine alone, and to browsers that come by the printed link, which opens once. It reads
    the store and changes nothing. End it with Ctrl-C.
    """
    try:
        from evaluand.view.resources.base import Source
        from evaluand.view.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise SpecError("the page needs starlette and uvicorn: pip install 'evaluand[view]'") from None

    def started(link: str) -> None:
        click.echo(f"{safe(str(folder))} is shown at {link}\nCtrl-C ends it")
        if not no_browser:
            webbrowser.open(link)

    serve(Source(DirectoryStore(folder)), port, started)
