"""Pages in Chromium, on which nothing may go wrong."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")  # the first needs a third less time
CHROMIUM = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *_NAMES))), None)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser for all tests of a process: to start one takes longer than most tests."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: make install")
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt install chromium, or $CHROMIUM")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        browser.loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser
        asyncio._set_running_loop(browser.loop)
        browser.close()


@contextmanager
def _running(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Playwright's loop runs in this thread, where only those who talk with the browser shall find it running."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(before)


@contextmanager
def open_tab(chromium: Any) -> Iterator[Any]:
    """A tab that shares nothing with others but the browser."""
    with _running(chromium.loop), closing(chromium.new_page()) as tab:
        yield tab


@contextmanager
def watch(tab: Any) -> Iterator[Any]:
    """The tab for one test, in which it opens no dialog, logs and raises nothing, and requests nothing but files."""
    faults: list[str] = []
    watching = {
        "dialog": lambda dialog: (faults.append(f"dialog {dialog.message}"), dialog.dismiss()),
        "console": lambda message: faults.append(message.text),
        "pageerror": lambda error: faults.append(str(error)),
        "request": lambda request: None if request.url.startswith("file:") else faults.append(request.url),
    }
    tab.set_viewport_size({"width": 1280, "height": 720})
    tab.emulate_media(color_scheme="light")
    for event, note in watching.items():
        tab.on(event, note)
    yield tab
    tab.goto("about:blank")
    for event, note in watching.items():
        tab.remove_listener(event, note)
    assert faults == []
