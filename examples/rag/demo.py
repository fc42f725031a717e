"""Asks a guide sixty questions, once with a search by words and once by meaning, and judges what happened inside.

    python demo.py [STORE] [--questions N]

`make demo-rag` installs what it needs. Everything runs here: the searches, the model, and what judges them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from guide import HERE, Guide, rows
from rich.console import Console
from rich.progress import track

from evaluand import App, ChatModel, Feedback, GroundTruth, Local
from evaluand.store.directory import DirectoryStore

CONTEXTS = "__record__.app.retriever.search[0].rets"


def feedbacks(questions: Sequence[dict[str, object]]) -> list[Feedback]:
    """What judges each answer: how it came about, whether it follows from what was found, and whether it is right."""
    texts = {row["id"]: f"{row['title']}. {row['text']}" for row in rows("passages.jsonl")}
    known = [
        {
            "query": row["question"],
            "expected_response": row["answer"],
            "expected_chunks": [texts[id] for id in row["passages"]],
        }
        for row in questions
        if row["answer"]
    ]
    local, truth = Local(), GroundTruth(known)
    return [
        Feedback(local.context_relevance, name="relevance of contexts").on_input().on(f"{CONTEXTS}[:]").aggregate(max),
        Feedback(local.groundedness, name="groundedness").on(CONTEXTS).on_output(),
        Feedback(local.relevance, name="relevance of the answer").on_input_output(),
        Feedback(local.language_match, name="language match").on_input_output(),
        Feedback(truth.agreement_measure, name="agreement").on_input_output(),
        Feedback(truth.hit_rate, name="right passage found").on_input().on(CONTEXTS),
    ]


def main() -> None:
    """Records two versions of the guide; their leaderboard and report come from the store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("store", nargs="?", default=str(HERE / ".evaluand"), help="where recordings are stored")
    parser.add_argument("--questions", type=int, help="ask only the first N questions")
    arguments = parser.parse_args()
    store, questions = DirectoryStore(arguments.store), rows("questions.jsonl")[: arguments.questions]
    with served() as url:
        model = ChatModel(url, "smollm2", version="135M-Q4_1", max_tokens=32, cut_off="keep", timeout=300)
        for by in ("words", "meaning"):
            app = App(Guide(model, by), name="guide", version=by, feedbacks=feedbacks(questions), store=store)
            with app as recording, ThreadPoolExecutor(2) as threads:
                ask = recording.carry_context(app.app.ask)
                asked = threads.map(ask, [row["question"] for row in questions])
                for _ in track(asked, f"search by {by}", len(questions), console=Console(stderr=True)):
                    pass
            app.close()
            print(f"search by {by}: {len(recording.records)} answers recorded and judged")


@contextmanager
def served() -> Iterator[str]:
    """The address of a small model on loopback, in another process."""
    command = [sys.executable, str(HERE.parent / "questions" / "serve.py")]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        address = next((line.split()[1] for line in server.stdout or () if line.startswith("listening")), None)
        if address is None:
            sys.exit("the model does not start; `make demo-rag` installs what it needs")
        yield f"{address}/v1"
    finally:
        server.communicate()


if __name__ == "__main__":
    main()
