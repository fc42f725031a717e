"""Judges: which there are, what they judged, how far each agrees with people, and where it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any, Final, NamedTuple

from evaluand.core.errors import EvaluandError, NotFound
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.people_labels import human_scorers
from evaluand.judges.cards.card import JudgeCard
from evaluand.judges.cards.from_evaluation import judge_of
from evaluand.judges.cards.standing import find_standing
from evaluand.judges.kind import CARDS
from evaluand.matches.kind import MATCHES
from evaluand.matches.labelled_sets import judge_of_matches
from evaluand.matches.matches import Matches
from evaluand.report.commands import format_command
from evaluand.report.facts.base import Facts, Names
from evaluand.report.facts.judges import describe_standing, rubric_facts
from evaluand.report.html.cells import cell
from evaluand.report.html.judges import judges_section
from evaluand.report.page.resources.base import Source, resource
from evaluand.report.text import SHORT_ID
from evaluand.run.kind import RUNS
from evaluand.store.store import Manifest

_LONGEST: Final = 2000
_MOST_USES: Final = 200


class Use(NamedTuple):
    """What a judge judged.

    Attributes:
        kind: `evaluations` or `matches`.
        id: of what it judged.
        scorer: the name of the judge there; None for matches.
        digest: of the judge.
        name: of the judge.
        model: that it asks, if it asks one.
    """

    kind: str
    id: str
    scorer: str | None
    digest: str
    name: str
    model: str | None


def _list_uses(source: Source) -> list[Use]:
    """What judges judged, newest first."""
    found: list[Use] = []
    for entry in source.finished(EVALUATIONS, MATCHES):
        found += _find_uses(source, entry["kind"], entry["id"])
    return found


def _find_uses(source: Source, kind: str, id: str) -> list[Use]:
    def find() -> list[Use]:
        manifest = source.store.manifest(kind, id)
        names = manifest["provenance"].get("judges")
        if not names:
            return []
        if kind == MATCHES:
            judge = judge_of_matches(Matches(source.store, id))
            return [Use(kind, id, None, judge.digest, judge.name, judge.model)]
        evaluation = Evaluation(source.store, id)
        judges = [(name, judge_of(evaluation, name)) for name in names if name in evaluation.scorers]
        return [Use(kind, id, name, judge.digest, judge.name, judge.model) for name, judge in judges]

    return source.facts.get(("judges", kind, id), find)


def list_judges_of(source: Source, evaluations: list[str]) -> list[Facts]:
    """The judges of some evaluations, each once: `id` and `name`."""
    uses = [use for id in evaluations for use in _find_uses(source, EVALUATIONS, id)]
    return [{"id": digest, "name": name} for digest, name in {use.digest: use.name for use in uses}.items()]


def list_judges_of_run(source: Source, run: str) -> list[Facts]:
    """The judges that graded a run, each once: `id`, `name` and the `command` that measures it against people."""
    graded = [entry["id"] for entry in source.finished(EVALUATIONS)]
    of_run = [id for id in graded if source.store.manifest(EVALUATIONS, id)["provenance"].get("run") == run]
    newest: dict[str, Use] = {}
    for use in (use for id in of_run for use in _find_uses(source, EVALUATIONS, id)):
        newest.setdefault(use.digest, use)
    return [{"id": use.digest, "name": use.name, "command": _format_measuring(source, use)} for use in newest.values()]


def _format_measuring(source: Source, use: Use) -> str:
    made = Evaluation(source.store, use.id)
    command = "judge card" if use.scorer is None else f"judge card --scorer {quote(use.scorer)}"
    return format_command(command, made.name or made.id[:SHORT_ID], source.root)


@resource("judges")
def read_judges(source: Source) -> Facts:
    """All judges of the store: their rubrics, models, what they judged, and whether they were measured."""
    uses: dict[str, list[Use]] = {}
    for use in _list_uses(source):
        uses.setdefault(use.digest, []).append(use)
    names = Names(source.store.refs())
    judges = [_describe(source, names, of_judge) for of_judge in uses.values()]
    others = [card for card in _list_cards(source) if card["judge"] not in uses]
    return {"judges": judges, "cards": others}


def _describe(source: Source, names: Names, uses: list[Use]) -> Facts:
    try:
        found = _find_facts(source, uses)
    except EvaluandError as error:  # a damaged card must not hide the other judges
        found = {"judge": uses[0].name, "status": None, "text": str(error), "card": None, "asked": [], "label": None}
    places = {name: found[name] for name in ("judge", "status", "text", "card", "asked", "label")}
    return places | {
        "id": uses[0].digest,
        "model": uses[0].model,
        "uses": [_describe_use(source, names, use) for use in uses[:_MOST_USES]],
        "n_uses": len(uses),
    }


def _describe_use(source: Source, names: Names, use: Use) -> Facts:
    made = source.store.manifest(use.kind, use.id)
    return {
        "kind": use.kind,
        "id": use.id,
        "names": names.find(use.kind, use.id, made.get("name")),
        "scorer": use.scorer,
        "created": made.get("created"),
    }


def _find_facts(source: Source, uses: list[Use]) -> Facts:
    """The standing of a judge, as `describe_standing` returns it, and `label`: the run to label first, or None.

    It is measured where people have labelled what it judged, if they have anywhere.
    """
    labelled = next((use for use in uses if use.kind == EVALUATIONS and _is_labelled(source, use.id)), None)
    use = labelled or uses[0]
    made = Matches(source.store, use.id) if use.kind == MATCHES else Evaluation(source.store, use.id)
    judge = judge_of_matches(made) if isinstance(made, Matches) else judge_of(made, use.scorer or "")
    standing = find_standing(source.store, judge, made.name or made.id[:SHORT_ID], use.scorer)
    facts = describe_standing(standing, judge) | {"label": None}
    if labelled is not None or isinstance(made, Matches) or standing.status not in ("unmeasured", "stale"):
        return facts
    run = made.run
    where = "its answers" if run is None else f"the answers of {run.name or run.id[:SHORT_ID]}"
    text = (
        f"{standing.finding}: nobody has labelled what it judged; label {where} first, on the page of"
        f" `evaluand view --label` or with `evaluand label`, and then measure it with `{standing.measure_it}`"
    )
    return facts | {"text": text, "label": None if run is None else run.id}


def _is_labelled(source: Source, id: str) -> bool:
    """Whether people have labelled answers that an evaluation graded."""
    run = source.store.manifest(EVALUATIONS, id)["spec"]["run"]
    return any(_find_labelled_run(source, entry["id"]) == run for entry in source.finished(EVALUATIONS))


def _find_labelled_run(source: Source, id: str) -> str | None:
    """The digest of the run of an evaluation that holds labels by people; None for other evaluations."""

    def find() -> str | None:
        evaluation = Evaluation(source.store, id)
        return str(evaluation.manifest["spec"]["run"]) if human_scorers(evaluation) else None

    return source.facts.get(("labelled run", id), find)


def _list_cards(source: Source) -> list[Facts]:
    """The cards of the store, newest first."""
    found = []
    for entry in source.finished(CARDS):
        card = JudgeCard(source.store, entry["id"])
        try:
            text = card.headline
        except EvaluandError as error:
            text = str(error)
        found.append({"id": card.id, "judge": card.judge_digest, "name": card.judge.name, "text": text})
    return found


def _list_ids(source: Source) -> Iterator[Mapping[str, str]]:
    yield from ({"id": digest} for digest in dict.fromkeys(use.digest for use in _list_uses(source)))
    yield from ({"id": card["id"]} for card in _list_cards(source))


@resource("judge/{id}", _list_ids)
def read_judge(source: Source, id: str) -> Facts:
    """A judge by its digest, or a card by its id: all that is known of the judge.

    Returns:
        `judge`, `status` (None for a card whose judge has judged nothing here), `section` (rubric and card as markup),
        `uses`, and of the card `confusion`, `calibration` and `misses`.
    """
    uses = [use for use in _list_uses(source) if use.digest == id]
    card = None
    if not uses:
        if not source.store.is_sealed(CARDS, id):
            raise NotFound("this judge is not in this store")
        card = JudgeCard(source.store, id)
        uses = [use for use in _list_uses(source) if use.digest == card.judge_digest]
    standing = _find_facts(source, uses) if uses else None
    if card is None and standing is not None and standing["card"] is not None:
        card = JudgeCard(source.store, standing["card"])
    names = Names(source.store.refs())
    stood = [] if standing is None else [standing | {"corrected": None}]
    known: Facts = {} if card is None else card.to_dict()
    name = standing["judge"] if standing else known["judge"]["name"]
    return {
        "judge": name,
        "status": None if standing is None else standing["status"],
        "asked": [] if standing is None else standing["asked"],
        "label": None if standing is None else standing["label"],
        "section": judges_section(stood, _section_facts(source, uses, known)),
        "uses": [_describe_use(source, names, use) for use in uses[:_MOST_USES]],
        "n_uses": len(uses),
        "confusion": known.get("confusion", []),
        "calibration": known.get("calibration", []),
        "misses": [] if card is None else _list_misses(source, card, known["misses"]),
        "command": None if card is None else format_command("show", card.id[:SHORT_ID], source.root),
    }


def _section_facts(source: Source, uses: list[Use], card: Facts) -> Facts:
    manifests: list[Manifest] = [source.store.manifest(use.kind, use.id) for use in uses[:1]]
    rubrics = [each for each in rubric_facts(manifests) if each["judge"] in (uses[0].scorer, uses[0].name)]
    return {"rubrics": rubrics, "rubric_changes": [], "cards": [card] if card else []}


def _list_misses(source: Source, card: JudgeCard, misses: list[Facts]) -> list[Facts]:
    """The answers on which judge and people differ most, with where their examples are."""
    dataset, indices = _find_examples(source, card, {miss["id"] for miss in misses})
    return [
        {name: miss[name] for name in ("id", "people", "judge", "difference")}
        | {
            "explanation": miss["explanation"],
            "texts": {name: cell(value, _LONGEST) for name, value in (miss["texts"] or {}).items()},
            "dataset": dataset,
            "index": indices.get(miss["id"]),
        }
        for miss in misses
    ]


def _find_examples(source: Source, card: JudgeCard, ids: set[str]) -> tuple[str | None, dict[str, str]]:
    """The dataset on which a judge was measured, and the index of some of its examples; none if it is not here."""
    made_from: list[Mapping[str, Any]] = card.manifest["provenance"]["made_from"]
    if not made_from or not ids:
        return None, {}
    try:
        dataset = _find_dataset(source, made_from[0])
        data = Dataset.stored(source.store, dataset)
    except EvaluandError:
        return None, {}
    found: dict[str, str] = {}
    for index, id in zip(data.indices, data.ids(), strict=True):
        if id in ids:
            found.setdefault(id, str(index))
            if len(found) == len(ids):
                break
    return dataset, found


def _find_dataset(source: Source, made: Mapping[str, Any]) -> str:
    """The dataset of what was judged."""
    manifest = source.store.manifest(made["kind"], made["id"])
    origin = manifest["provenance"]
    run = origin["run"] if made["kind"] == EVALUATIONS else origin["runs"][0]
    return str(source.store.manifest(RUNS, run)["spec"]["dataset"])
