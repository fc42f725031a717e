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
  evaluand view --host 0.0.0.0 --port 8000 --url https://eval.example.org --auth token.txt
  evaluand view --url https://eval.example.org --port 8000 --auth header:X-Forwarded-User
"""


@click.command("view", epilog=_EXAMPLES)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on.  [default: a free one]")
@click.option("--no-browser", is_flag=True, help="Print the link, and open no browser.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="IP", help="Listen on another address; needs --auth."
)
@click.option("--url", metavar="URL", help="The address that browsers see, such as https://eval.example.org.")
@click.option(
    "--auth",
    metavar="FILE|header:NAME",
    help="Log in by the token in a file, or at a proxy that names the user in a header and removes it from requests.",
)
@store_option
def command(
    port: int,
    no_browser: bool,
    host: str,
    url: str | None,
    auth: str | None,
    folder: Path,
) -> None:
    """Open what is stored in a browser: runs side by side, with their rows, traces and comparisons.

    The page is served to this machine alone, and to browsers that come by the printed link, which opens once; the page
    makes links for others. It reads the store and changes nothing. End it with Ctrl-C.
    """
    try:
        from evaluand.view.addresses import choose_address
        from evaluand.view.resources.base import Source
        from evaluand.view.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("h11", "starlette", "uvicorn"):
            raise
        raise SpecError("the page needs starlette and uvicorn: pip install 'evaluand[view]'") from None

    def started(link: str, place: str) -> None:
        where = "" if url is None else f"; the server listens on {place}"
        click.echo(f"{safe(str(folder))} is shown at {link}{where}\nCtrl-C ends it")
        if not no_browser:
            webbrowser.open(link)

    serve(Source(DirectoryStore(folder)), choose_address(host, port, url, auth), started)
