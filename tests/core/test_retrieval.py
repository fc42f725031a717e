"""The model behind search by meaning is loaded without a trace in the program that uses it."""

from __future__ import annotations

import pytest
from support.fresh import run_python

LOADING = """
import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from evaluand import EmbeddingIndex

together = Barrier(4)

def search(text):
    together.wait()
    return EmbeddingIndex([text]).search(text, 1)

with ThreadPoolExecutor(4) as threads:
    assert len(list(threads.map(search, ["one", "two", "three", "four"]))) == 4
logging.getLogger("any").info("a line that nobody asked for")
assert (logging.root.handlers, logging.root.level) == ([], logging.WARNING)
"""


def test_threads_that_load_the_embedding_model_leave_the_root_logger_unchanged() -> None:
    pytest.importorskip("wordllama")
    done = run_python(LOADING)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
