"""`evaluand leaderboard`: compares versions of apps by their feedbacks."""

from evaluand.apps.leaderboards.board import collect_sources, leaderboard
from evaluand.cli.command import argument, make_command
from evaluand.cli.options import complete_artifact, confidence_option, json_option, store_option
from evaluand.cli.output import print_json, show
from evaluand.cli.progress import show_notes
from evaluand.core.errors import NotFound
from evaluand.report.leaderboard import leaderboard_table
from evaluand.store.addresses import Place
from evaluand.store.opening import open_store

_EXAMPLES = """\b
Examples:
  evaluand leaderboard
  evaluand leaderboard rag
  evaluand leaderboard rag/1 rag/2 --json
"""


@make_command("leaderboard", epilog=_EXAMPLES)
def command(
    artifacts: tuple[str, ...] = argument(metavar="[ID|NAME...]", nargs=-1, shell_complete=complete_artifact),
    confidence: float = confidence_option,
    folder: Place = store_option,
    as_json: bool = json_option,
) -> None:
    """Compare versions of apps: mean feedbacks, latency, tokens and cost, and which differ significantly.

    Name apps (all their versions), recordings, evaluations or runs; by default, everything that was recorded. Open
    recordings count with the records they have so far.
    """
    sources = collect_sources(open_store(folder), artifacts)
    if not sources:
        raise NotFound(f"no app was recorded in {folder} yet")
    with show_notes():
        board = leaderboard(sources, confidence=confidence)
    if as_json:
        return print_json(board.to_dict())
    return show(leaderboard_table(board.to_dict()))
