"""The page of a store in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.browser import open_tab
from support.view_server import serve_store


@contextmanager
def open_page(chromium: Any, store: Path, errors: Path) -> Iterator[Any]:
    """A tab that a real server of the store has let in, on which nothing may go wrong; `origin` is the server's."""
    with open_tab(chromium) as tab, serve_store(store, errors, is_opened=False) as server:
        faults: list[str] = []
        tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("console", lambda message: faults.append(message.text))
        tab.goto(server.link)
        tab.origin = server.origin
        yield tab
        assert faults == []
