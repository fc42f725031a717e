"""Tournaments of an experiment: which tasks and earlier runs a judge compares with each other, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.errors import NotFound, SpecError, kind_of, nearest
from evaluand.data.dataset import Dataset
from evaluand.evaluation.comparison_scorers import ComparisonScorer, as_comparison_scorer
from evaluand.evaluation.scorer import FunctionScorer
from evaluand.matches.judging import check_text
from evaluand.matches.matcher import Matcher, check_pairing
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.method import RatingMethod
from evaluand.matches.ratings.rating import Ratings, check_systems, rate
from evaluand.matches.schedule import AgainstBaseline, Schedule, as_schedule
from evaluand.metrics.base.metric import check_confidence
from evaluand.run.runner import Run
from evaluand.store.store import Store, check_name

MATCHES_NAME = "matches"
"""The default name of matches."""


@dataclass(frozen=True)
class Tournament:
    """Comparisons of the responses of an experiment's tasks by a judge.

    Args:
        judge: a comparison scorer, a function of two responses, or the name of a kind.
        name: its name in results; the matches are stored as `EXPERIMENT/NAME`.
        tasks: names of the tasks that are compared; default: all.
        runs: earlier runs over the same dataset that are compared too: names or ids, or label → name or id.
        schedule: which pairs are compared on which examples; default: all pairs on all examples.
        orders: `both` to judge each pair in both orders; `random` to judge it in one, by the seed.
        seed: of random orders and of schedules that choose at random.
        rating: how the systems are rated; None for no ratings.
        confidence: of the intervals of ratings.

    Raises:
        SpecError: an argument is wrong.

    Example:
        >>> Tournament(lambda first, second: "tie", runs={"last week": "3f2a9c"}).systems(["mine", "theirs"])
        ['mine', 'theirs', 'last week']
    """

    judge: ComparisonScorer | Callable[..., Any] | str
    name: str = MATCHES_NAME
    tasks: Sequence[str] = ()
    runs: Sequence[str] | Mapping[str, str] = ()
    schedule: Schedule | str | None = None
    orders: str = "both"
    seed: int = 0
    rating: RatingMethod | str | None = field(default_factory=RatingMethod)
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "judge", as_comparison_scorer(self.judge))
        object.__setattr__(self, "schedule", as_schedule(self.schedule))
        check_pairing(as_comparison_scorer(self.judge), as_schedule(self.schedule), self.orders, self.seed)
        check_confidence("a tournament", self.confidence)
        if isinstance(self.rating, str):
            object.__setattr__(self, "rating", RatingMethod(kind=self.rating))
        elif not isinstance(self.rating, RatingMethod | None):
            raise SpecError(f"rating is {kind_of(self.rating)}; give a RatingMethod, or the name of its kind")
        for what, names in (("tasks", self.tasks), ("runs", self.runs)):
            is_list = isinstance(names, list | tuple) or (what == "runs" and isinstance(names, Mapping))
            if not is_list or not all(isinstance(name, str) for name in [*names, *dict(_labelled(names)).values()]):
                raise SpecError(f"{what} must be a list of names, not {kind_of(names)}")
        for label, _ in _labelled(self.runs):
            check_text("runs", label)

    def systems(self, tasks: Sequence[str]) -> list[str]:
        """The labels of the systems, in their order: of the tasks of an experiment, then of the earlier runs.

        Raises:
            SpecError: a task is unknown, a label occurs twice, or the schedule cannot pair these systems.
        """
        for name in self.tasks:
            if name not in tasks:
                raise SpecError(f"no task is called {name!r}{nearest(name, tasks)}; there are {', '.join(tasks)}")
        labels = [*(self.tasks or tasks), *(label for label, _ in _labelled(self.runs))]
        if twice := [label for place, label in enumerate(labels) if label in labels[:place]]:
            raise SpecError(f"two systems are called {twice[0]!r}; give each its own label, as runs: {{LABEL: NAME}}")
        if len(labels) < 2:
            there = f"is {labels[0]}" if labels else "is none"
            raise SpecError(
                f"matches need two systems or more, and there {there}; add a task, or an earlier run under runs"
            )
        as_schedule(self.schedule).check(labels, self._n_orders)
        if isinstance(self.rating, RatingMethod):
            check_systems(self.rating, labels)
        return labels

    def find_runs(self, store: Store, dataset: Dataset, tasks: Mapping[str, str]) -> dict[str, Run]:
        """The earlier runs by label.

        Args:
            dataset: the examples of the experiment.
            tasks: task of the experiment → the name of its runs.

        Raises:
            SpecError: a run does not exist, is not finished, is over other examples, or has the name of a task's runs.
        """
        return {label: _find_run(store, text, dataset, tasks) for label, text in _labelled(self.runs)}

    def unpinned_notes(self, *, in_yaml: bool) -> Iterator[str]:
        """Why its judge is unpinned, and what to declare so that judgements are reused; none if it is pinned.

        Args:
            in_yaml: the judge is declared in an experiment file.
        """
        judge = as_comparison_scorer(self.judge)
        for why in judge.identify().reasons(in_yaml=in_yaml and isinstance(judge, FunctionScorer)):
            remedy = why if in_yaml else why.replace("version=...", '@comparison_scorer(version="1")')
            yield f"the judge of {self.name} is unpinned, so it compares everything again every time: {remedy}"

    def most_judgements(self, examples: int, tasks: Sequence[str]) -> int:
        """The largest possible number of judgements; equal, missing and already judged responses need none.

        Args:
            examples: the number of examples, or of examples and replications.
        """
        n = len(self.systems(tasks))
        judge = as_comparison_scorer(self.judge)
        if judge.has_pairs:
            return 0
        if judge.compares_all:
            return examples * self._n_orders
        pairs = n - 1 if isinstance(self.schedule, AgainstBaseline) else n * (n - 1) // 2
        most: int = examples * pairs * self._n_orders
        return min(most, getattr(self.schedule, "budget", most))

    @property
    def _n_orders(self) -> int:
        return 2 if self.orders == "both" else 1

    def play(self, matcher: Matcher, runs: Mapping[str, Run], **options: Any) -> Matches:
        """The matches of runs by label; `options` are what is repeated or continued, as in `Matcher.match`."""
        return matcher.match(
            [*runs.values()],
            self.judge,
            labels=[*runs],
            schedule=self.schedule,
            orders=self.orders,
            seed=self.seed,
            **options,
        )

    def rate(self, matches: Matches, **options: Any) -> Ratings | None:
        """The ratings of the systems of its matches; None for no ratings. See `rate` for the options.

        Raises:
            DataError: matches have no outcome, and the method refuses that.
        """
        assert not isinstance(self.rating, str)  # `__post_init__` has made it a method
        return None if self.rating is None else rate(matches, method=self.rating, confidence=self.confidence, **options)


@dataclass(frozen=True, kw_only=True)
class MatchResults:
    """The results of tournaments.

    Attributes:
        matches: by the name of their tournament.
        ratings: of their systems, by the same name.
        unrated: the name of a tournament → why its systems have no ratings.
    """

    matches: Mapping[str, Matches] = field(default_factory=dict)
    ratings: Mapping[str, Ratings] = field(default_factory=dict)
    unrated: Mapping[str, str] = field(default_factory=dict)

    def matches_facts(self) -> list[dict[str, Any]]:
        """The matches of each tournament with the ratings of its systems, as plain data."""
        from evaluand.report.facts.tournaments import tournament_facts

        return [
            tournament_facts(name, matches, self.ratings.get(name), self.unrated.get(name))
            for name, matches in self.matches.items()
        ]


def _labelled(runs: Sequence[str] | Mapping[str, str]) -> list[tuple[str, str]]:
    """(label, name or id) of each run."""
    return [*runs.items()] if isinstance(runs, Mapping) else [(name, name) for name in runs]


def _find_run(store: Store, text: str, dataset: Dataset, tasks: Mapping[str, str]) -> Run:
    for task, name in tasks.items():
        if text == name:
            raise SpecError(f"runs: {text!r} are the runs of task {task!r}, which is compared; give the id of another")
    try:
        run = Run.open(store, text)
    except (NotFound, SpecError) as error:
        raise SpecError(f"runs: {error}") from None
    if run.manifest["spec"]["dataset"] != dataset.id:
        raise SpecError(
            f"runs: {text!r} is over other examples than this experiment; run its task over the same dataset, where"
            " finished calls are reused"
        )
    return run
