"""The three steps in one command: `python -m evaluand.interop.pharia.run_evaluation --task my_module.MyTask …`."""

import importlib
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from evaluand.core.errors import EvaluandError, SpecError
from evaluand.interop.pharia.aggregator import Aggregator
from evaluand.interop.pharia.datasets import FileDatasetRepository
from evaluand.interop.pharia.domain import FAILING, format_exception
from evaluand.interop.pharia.evaluations import FileAggregationRepository, FileEvaluationRepository
from evaluand.interop.pharia.evaluator import Evaluator
from evaluand.interop.pharia.runner import Runner
from evaluand.interop.pharia.runs import FileRunRepository

T = TypeVar("T")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--eval-logic", required=True, help="Class or function that creates the evaluation logic, as module.Name."
)
@click.option("--aggregation-logic", required=True, help="Class or function that creates the aggregation logic.")
@click.option("--task", required=True, help="Class or function that creates the task.")
@click.option("--dataset-repository-path", required=True, type=click.Path(path_type=Path), help="Folder of datasets/.")
@click.option("--dataset-id", required=True, help="Id of the dataset.")
@click.option("--target-dir", required=True, type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--description", required=True, help="Description of the run.")
def command(
    eval_logic: str,
    aggregation_logic: str,
    task: str,
    dataset_repository_path: Path,
    dataset_id: str,
    target_dir: Path,
    description: str,
) -> None:
    """Run a task over a dataset, then evaluate and aggregate its outputs."""
    try:
        if not (dataset_repository_path / "datasets").is_dir():
            raise SpecError(f"{dataset_repository_path} contains no datasets; name the folder that contains datasets/")
        datasets = FileDatasetRepository(dataset_repository_path)
        runs, evaluations = FileRunRepository(target_dir), FileEvaluationRepository(target_dir)
        created_task, logic, aggregation = (_construct(name) for name in (task, eval_logic, aggregation_logic))
        run = Runner(created_task, datasets, runs, description).run_dataset(dataset_id)
        evaluation = Evaluator(datasets, runs, evaluations, description, logic).evaluate_runs(run.id)
        aggregator = Aggregator(evaluations, FileAggregationRepository(target_dir), description, aggregation)
        try:
            overview = aggregator.aggregate_evaluation(evaluation.id)
        except FAILING as error:
            if isinstance(error, EvaluandError):
                raise
            cause = format_exception(error, stack_trace=False)
            raise SpecError(f"{aggregation_logic} fails on {evaluation}, stored in {target_dir}: {cause}") from error
    except EvaluandError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{overview}\nstored in {target_dir}")


def main(cli_args: Sequence[str] | None = None) -> None:
    """Run the command with the arguments of a process: its name, then the options; by default `sys.argv`.

    Raises:
        SystemExit: an error, which is reported without a traceback, or the help was shown.
    """
    name, options = _split(cli_args)
    with _exiting():
        result = command.main(args=options, prog_name=name, standalone_mode=False)
    if result is not None:
        raise SystemExit(result)


def parse_args(cli_args: Sequence[str]) -> Namespace:
    """The options of the command from the arguments of a process: its name, then the options. Dotted names are loaded.

    Raises:
        ImportError, AttributeError: a dotted name does not exist.
        SystemExit: an option is wrong, which is reported, or the help was shown.
    """
    name, options = _split(cli_args)
    with _exiting():
        values = command.make_context(name, options).params
    loaded = {option: function_from_string(values[option]) for option in ("eval_logic", "aggregation_logic", "task")}
    return Namespace(**values | loaded)


def function_from_string(fully_qualified_function_name: str) -> Any:
    """The class or function of a dotted name; modules in the working directory are found too.

    Example:
        >>> function_from_string("math.floor")(1.5)
        1
    """
    module, _, attribute = fully_qualified_function_name.rpartition(".")
    if "" not in sys.path:
        sys.path.insert(0, "")
    return getattr(importlib.import_module(module), attribute)


def create_task(factory: Callable[[], T]) -> T:
    """The task that a class or function creates. It gets no argument: there is no client of a paid service."""
    return factory()


def _split(cli_args: Sequence[str] | None) -> tuple[str | None, list[str]]:
    """The name of the process and its options."""
    name, *options = (sys.argv if cli_args is None else cli_args) or [""]
    return Path(name).name or None, options


@contextmanager
def _exiting() -> Iterator[None]:
    """Turns the exceptions of click into SystemExit, after reporting errors."""
    try:
        yield
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from error
    except click.exceptions.Exit as done:
        raise SystemExit(done.exit_code) from None
    except click.Abort:
        raise KeyboardInterrupt from None


def _construct(name: str) -> Any:
    """Call the class or function of a dotted name."""
    try:
        factory = function_from_string(name)
    except Exception as error:  # the user's module may raise anything
        raise SpecError(
            f"{name} cannot be imported: {format_exception(error, stack_trace=False)}; write it as module.Name"
        ) from error
    try:
        return create_task(factory)
    except Exception as error:
        hint = "name a class or function that can be called without arguments"
        raise SpecError(f"{name}() fails: {format_exception(error, stack_trace=False)}; {hint}") from error


if __name__ == "__main__":
    main()
