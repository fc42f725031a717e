"""`evaluand view`: serves the page on a store to a browser."""

import os
import sys
import threading
import time
import webbrowser
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from tempfile import mkstemp
from typing import Final

import click
import pyarrow as pa

from evaluand.cli.command import make_command, option
from evaluand.cli.options import json_option, store_option
from evaluand.cli.output import print_json
from evaluand.cli.progress import display, show_notes
from evaluand.cli.watched import end_with_parent, find_stoppable, interrupt
from evaluand.core.errors import SpecError, plural
from evaluand.engine.keyed_work import Tally
from evaluand.report.text import safe
from evaluand.store.addresses import Place
from evaluand.store.opening import open_store

_EXAMPLES = """\b
Examples:
  evaluand view
  evaluand view --port 8000 --no-browser
  evaluand view --host 0.0.0.0 --port 8000 --url https://eval.example.org --auth token.txt
  evaluand view --url https://eval.example.org --port 8000 --auth header:X-Forwarded-User
  evaluand view --label
  evaluand view --bundle page
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    port: int = option("The port to listen on.  [default: a free one]", type=click.IntRange(0, 65535), default=0)
    no_browser: bool = option("Print the link, and open no browser.")
    host: str = option("Listen on another address; needs --auth.", default="127.0.0.1", show_default=True, metavar="IP")
    url: str | None = option("The address that browsers see, such as https://eval.example.org.", metavar="URL")
    auth: str | None = option(
        "Log in by the token in a file, or at a proxy that names the user in a header and removes it from requests.",
        metavar="FILE|header:NAME",
    )
    live: bool = option("Open the page of the run that was begun last.")
    label: Path | None = option(
        "Let people label answers; theirs are appended to files in DIR.  [default: here]",
        type=click.Path(file_okay=False, path_type=Path),
        is_flag=False,
        flag_value=".",
        metavar="[DIR]",
    )
    bundle: Path | None = option(
        "Write the page as files, to open without a server.",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
    )
    folder: Place = store_option
    as_json: bool = json_option


@make_command("view", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Open what is stored in a browser: runs side by side, with their rows, traces and comparisons.

    The page is served to this machine alone, and to browsers that come by the printed link, which opens once; the page
    makes links for others. It reads the store and changes nothing, unless --label lets people label. End it with
    Ctrl-C.
    """
    if options.label is not None and options.bundle is not None:
        raise click.UsageError("files cannot take labels; give --label or --bundle, not both")
    if options.as_json and options.bundle is None:
        raise click.UsageError("--json describes a bundle; give --bundle DIR")
    pa.set_memory_pool(pa.system_memory_pool())  # it gives back what was read; others hold a third more
    if options.bundle is not None:
        return _write(options.bundle, options.folder, options.as_json)
    try:
        from evaluand.report.page.addresses import choose_address
        from evaluand.report.page.resources.base import Source
        from evaluand.report.page.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("h11", "starlette", "uvicorn"):
            raise
        raise SpecError("the page needs starlette and uvicorn: pip install 'evaluand[view]'") from None

    address = choose_address(options.host, options.port, options.url, options.auth)
    if address.is_overheard:
        note = (
            "note: without HTTPS anybody on the way can read the token and the store; put a proxy with HTTPS before it"
        )
        click.echo(note, err=True)

    if not options.live and not open_store(options.folder).top.exists():
        click.echo(f"note: there is no store at {safe(str(options.folder))} yet; `evaluand run` makes one", err=True)

    leading = BrowserFile()

    def started(link: str, place: str) -> None:
        where = "" if options.url is None else f"; the server listens on {place}"
        click.echo(f"{safe(str(options.folder))} is shown at {link}{where}\nCtrl-C ends it")
        if not options.no_browser:
            leading.open(link)

    if options.label is not None:
        options.label.mkdir(parents=True, exist_ok=True)
    run = find_stoppable()
    if run is not None:
        end_with_parent(run)
    stop = None if run is None else partial(interrupt, run)
    try:
        source = Source(open_store(options.folder), labels=options.label)
        serve(source, address, started, "/live" if options.live else "/", stop, leading.remove)
    finally:
        leading.remove()
    _leave_reads()


def _leave_reads() -> None:
    """Ends the process if requests are still being answered: nobody waits for them, and reading changes nothing."""
    end = time.monotonic() + _GRACE
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join(max(end - time.monotonic(), 0.0))
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)


_GRACE: Final = 1.0  # seconds for a label to be written


class BrowserFile:
    """A file that leads a browser to a link, and that only this user can read: command-line arguments are visible to
    every user of the machine.
    """

    def __init__(self) -> None:
        self._path: Path | None = None

    def open(self, link: str) -> None:
        """Opens the link in a browser; the file is there for a minute at most."""
        number, name = mkstemp(".html", "evaluand-")
        self._path = Path(name)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(_LEADING.format(link=escape(link)))
        timer = threading.Timer(_OPENING, self.remove)
        timer.daemon = True
        timer.start()
        # In a thread: a browser in the terminal ends only when the user leaves it.
        threading.Thread(target=webbrowser.open, args=(self._path.as_uri(),), daemon=True).start()

    def remove(self) -> None:
        """Removes the file, which is no longer needed once a browser has come by the link."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


_OPENING: Final = 60  # seconds for a browser to read the file

_LEADING: Final = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>evaluand</title>
<meta http-equiv="refresh" content="0;url={link}"></head>
<body><p><a href="{link}">Open the page</a></p></body>
</html>
"""


def _write(bundle: Path, folder: Place, as_json: bool) -> None:
    from evaluand.report.page.bundle import PIECE, write_bundle
    from evaluand.report.page.resources.base import Source

    tally = Tally("files")
    with show_notes(), display(as_json, quiet=False)(tally):
        written = write_bundle(Source(open_store(folder), PIECE), bundle, tally)
    files = sum(written.files.values())
    if as_json:
        facts = {"folder": os.path.abspath(bundle), "files": files, "bytes": written.bytes}
        return print_json(facts | {"of": dict(written.files), "unreadable": written.unreadable})
    page = bundle / "index.html"
    click.echo(f"{safe(str(page))}: {plural(files, 'file')} of data, {written.bytes / 1e6:.1f} MB")
    for path, reason in [*written.unreadable.items()][:_SHOWN]:
        click.echo(f"note: {safe(path)}: {safe(reason)}", err=True)
    if (more := len(written.unreadable) - _SHOWN) > 0:
        click.echo(f"note: {plural(more, 'more path')} could not be read; the page says why", err=True)


_SHOWN: Final = 5
