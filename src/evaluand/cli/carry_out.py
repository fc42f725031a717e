"""Runs an experiment for a command, and says how to continue if it stops early."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Final

import click
from click.exceptions import Exit

from evaluand.cli import INTERRUPTED
from evaluand.cli.command import option
from evaluand.cli.open_costs import sufficient_budget
from evaluand.cli.options import suggest_command
from evaluand.cli.progress import Display
from evaluand.core.errors import EngineError, plural
from evaluand.engine.budget import CODE as BUDGET, Budget
from evaluand.engine.outcome import Aborted
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.predictions.steps import Results, Steps
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.kind import RUNS
from evaluand.run.lost_answers import LOST
from evaluand.run.request import ExperimentRequest, PathRequest, Repetition
from evaluand.store.folder_store import FolderStore

repeat_lost_option: Final[bool] = option("Repeat calls and grades that cost, where stored ones are damaged or missing.")


@dataclass(frozen=True, kw_only=True)
class RepeatOptions:
    """The options that say what is done again, though it is stored."""

    fresh: bool = option("Repeat every call and grade.")
    retry_failed: bool = option("Repeat the calls and grades that failed.")
    keep_answers: bool = option("Take answers over though the code has changed; every number shows it.")
    repeat_lost: bool = repeat_lost_option
    no_calls: bool = option("Grade and summarise the stored runs without calling tasks.")

    def request(self, limit: int | None) -> PathRequest:
        """What is asked of an experiment or a suite.

        Raises:
            UsageError: options contradict each other.
        """
        if self.fresh + self.retry_failed + self.no_calls > 1:
            raise click.UsageError("give one of --fresh, --retry-failed and --no-calls")
        if self.fresh and self.keep_answers:
            raise click.UsageError("--fresh repeats the answers that --keep-answers takes over; give one of them")
        again = {each.name: getattr(self, each.name) for each in fields(Repetition)}
        return PathRequest(limit=limit, calls=not self.no_calls, **again)


def carry_out(
    experiment: Steps,
    store: FolderStore,
    request: ExperimentRequest,
    progress: Display,
    again: Sequence[str] | None = None,
) -> Results:
    """Runs an experiment; if it stops early, reports how far it is and how to continue.

    Args:
        again: the command that continues it and its arguments, if not `evaluand resume`.

    Raises:
        Exit: it was interrupted.
    """
    experiment.policy = replace(experiment.policy, finishing=_print_finishing, sharing=_print_sharing)
    budget = experiment.policy.shared_budget
    with reported_stop(
        store, progress, again, budget=budget, enough=lambda: _find_enough(experiment, store, budget, request.only)
    ):
        return experiment.run(store, progress=progress, **vars(request))


@contextmanager
def reported_stop(
    store: FolderStore,
    progress: Display,
    again: Sequence[str] | None = None,
    *,
    can_resume: bool = True,
    budget: Budget | None = None,
    enough: Callable[[], Budget | None] = lambda: None,
) -> Iterator[None]:
    """A block that, if it stops early, reports how far the work is and how to continue.

    Args:
        again: the command that continues the work and its arguments, if not `evaluand resume`.
        can_resume: whether `evaluand resume` knows how to continue it; otherwise only the same command does.
        budget: of the work; if it is spent, the work continues with a larger one.
        enough: the budget that will do; None if nobody knows.

    Raises:
        Exit: it was interrupted.
    """
    try:
        yield
    except KeyboardInterrupt:
        go_on = _suggest(store, again, can_resume, budget) or _SAME_COMMAND
        click.echo(safe(f"interrupted{_describe_progress(progress)}; {go_on}"), err=True)
        raise Exit(INTERRUPTED) from None
    except (Aborted, EngineError) as error:
        is_refused = budget is not None and isinstance(error, Aborted) and error.code == BUDGET
        amount, remark = _larger_budget(budget, enough) if budget and is_refused else (budget, "")
        more = ["--repeat-lost"] if isinstance(error, Aborted) and error.code == LOST else []
        if go_on := _suggest(store, again, can_resume, amount, more):
            error.add_note(f"stopped{_describe_progress(progress)}; {remark}{go_on}")
        raise


def words_to_repeat(arguments: Sequence[str]) -> list[str]:
    """The arguments and options of this command that decide what is run, checked and written.

    Args:
        arguments: those without a flag.
    """
    ctx, words = click.get_current_context(), [*arguments]
    for parameter in ctx.command.params:
        left_out = isinstance(parameter, click.Argument) or parameter.name in _ONCE
        value = None if left_out else ctx.params.get(str(parameter.name))
        for each in value if isinstance(value, tuple) else [value]:
            if each not in (None, False, parameter.default):
                words += [max(parameter.opts, key=len), *([] if each is True else [str(each)])]
    return words


_ONCE: Final = (
    "task",
    "fresh",
    "retry_failed",
    "keep_answers",
    "repeat_lost",
    "budget",
    "view",
    "folder",
    "as_json",
    "quiet",
)
"""The options that do not belong to the work, or that are said otherwise when it is repeated."""


def _larger_budget(budget: Budget, enough: Callable[[], Budget | None]) -> tuple[Budget | str, str]:
    """The budget with which the work continues, and a remark on it."""
    if other := budget.other_currency:
        if budget.spent:
            return f"AMOUNT {other}", f"state all prices in {budget.currency}, as no budget counts two currencies; "
        return f"AMOUNT {other}", f"give the budget in {other}, or all prices in {budget.currency}; "
    if not budget.is_spent:
        return budget, ""
    if (found := enough()) is not None:
        return found, f"the rest will cost about {found.cost - budget.spent:.2g} {budget.currency}; "
    return f"AMOUNT {budget.currency}", "nobody knows yet what the rest costs; "


def _find_enough(experiment: Steps, store: FolderStore, budget: Budget | None, only: str | None) -> Budget | None:
    """A budget that will do for the experiment; None if nobody knows."""
    if budget is None or store.opened is None or store.opened["kind"] not in (RUNS, EVALUATIONS):
        return None
    return sufficient_budget(budget, experiment, store, store.opened, only)


def _print_finishing(calls: int) -> None:
    click.echo(f"finishing {plural(calls, 'call')}; Ctrl-C again to stop at once", err=True)


def _print_sharing(others: str) -> None:
    click.echo(safe(others), err=True)


def _describe_progress(progress: Display) -> str:
    tally = progress.last
    return f": {tally.done:,} of {tally.total:,} done ({tally.label})" if tally else ""


_SAME_COMMAND: Final = "run the same command again to continue"


def _suggest(
    store: FolderStore,
    again: Sequence[str] | None,
    can_resume: bool,
    budget: Budget | str | None = None,
    more: Sequence[str] = (),
) -> str:
    """The command that continues the work [with this budget and options]; empty if `evaluand resume` finds none."""
    if not can_resume:
        return _SAME_COMMAND
    options = [*([] if budget is None else ["--budget", str(budget)]), *more]
    if again is not None:
        return f"continue with: {suggest_command(again[0], [*again[1:], *options], store.root)}"
    opened = store.opened
    if opened is None or store.is_sealed(opened["kind"], opened["id"]):
        return ""
    return f"continue with: {suggest_command('resume', [opened['id'][:SHORT_ID], *options], store.root)}"
