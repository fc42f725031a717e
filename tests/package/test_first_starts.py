"""Three first starts, each in one command or cell: a CSV of two models, a fitted pipeline, an asynchronous function."""

from __future__ import annotations

import ast
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner
from support.places import ROOT_FOLDER

from evaluand.cli import main

FOLDER = ROOT_FOLDER / "examples" / "first"


def test_a_csv_with_two_models_is_compared():
    command = ["score", str(FOLDER / "predictions.csv"), "--truth", "label"]
    result = CliRunner(env={"COLUMNS": "160"}).invoke(
        main, [*command, "--prediction", "model_a", "--prediction", "model_b"]
    )
    assert result.exit_code == 0, result.output
    assert "A → B" in result.stdout
    assert re.search(r"accuracy .*\[\d", result.stdout)


def test_the_last_line_of_a_cell_shows_a_pipeline_with_intervals():
    pytest.importorskip("sklearn")
    cell = ast.parse((FOLDER / "pipeline.py").read_text())
    last = cell.body.pop()
    names = {}
    exec(compile(cell, "cell", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)._repr_html_()
    assert all(metric in shown for metric in ("accuracy", "f1", "roc_auc"))
    assert "<th>low</th><th>high</th>" in shown


class Chat(BaseHTTPRequestHandler):
    """Adds or multiplies two numbers, and speaks the protocol of OpenAI's chat completions."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = body["messages"][-1]["content"]
        a, b = map(int, re.findall(r"\d+", question))
        answer = f"It is {a * b if '*' in question else a + b}."
        reply = {"choices": [{"message": {"role": "assistant", "content": answer}}]}
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def test_an_asynchronous_function_calls_a_chat_model(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"URL": f"http://127.0.0.1:{server.server_port}/v1", "EVALUAND_STORE": str(tmp_path), "COLUMNS": "160"}
    try:
        result = CliRunner(env=env).invoke(main, ["run", str(FOLDER)])
    finally:
        server.shutdown()
        server.server_close()
    assert result.exit_code == 0, result.output
    assert re.search(r"accuracy · \S+ +1\.000", result.stdout)
