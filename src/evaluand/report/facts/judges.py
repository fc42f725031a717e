"""Facts about judges: whether they were measured, and means corrected for their errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from evaluand.judges.judge_digest import questions_of
from evaluand.judges.kind import CARDS
from evaluand.report.facts.base import Facts
from evaluand.store.store import exists

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.evaluation.standing import ScorerStanding
    from evaluand.judges.cards.labelled_set import JudgeIdentity
    from evaluand.matches.matches import Matches
    from evaluand.metrics.judging.estimate import Estimate
    from evaluand.store.store import Manifest, Store


def judge_facts(evaluations: Mapping[str, Evaluation]) -> list[Facts]:
    """The judges of some evaluations by task: their standing, and their means as they are and corrected.

    Returns:
        Of each judge and task: `judge`, `task`, `status` (`measured`, `weak`, `stale` or `unmeasured`), `text` (it in
        words), `card` (its id, or None), `changed`, `asked` (of each question its model and rubric), and `raw` (the
        share judged right) and `corrected` with `value`, `low`, `high` and `reason`, or None for judges that do not
        say right or wrong; `overlap` warns of labelled answers among them.
    """
    if not any(evaluation.manifest["provenance"].get("judges") for evaluation in evaluations.values()):
        return []
    from evaluand.evaluation.standing import scorer_standings
    from evaluand.judges.cards.from_evaluation import judge_of  # on use: these need NumPy

    found = []
    known: dict[tuple[str, str], tuple[ScorerStanding, Facts]] = {}  # each judge is described once
    for task, evaluation in evaluations.items():
        for name, own in scorer_standings(evaluation).items():
            if (name, own.digest) not in known:
                known[name, own.digest] = own, describe_standing(own, judge_of(evaluation, name))
            standing, described = known[name, own.digest]
            facts = described | {"task": task} | _UNCORRECTED
            if standing.status == "measured" and (means := standing.correct(evaluation, name)) is not None:
                facts |= {"raw": _number(means.raw), "corrected": _number(means.corrected), "overlap": means.overlap}
            found.append(facts)
    return sorted(found, key=lambda each: each["judge"])


def card_facts(store: Store, judges: Iterable[Facts]) -> list[Facts]:
    """The cards of judges, as `judge_facts` names them, each once."""
    from evaluand.judges.cards.card import JudgeCard  # on use: needs NumPy

    ids = dict.fromkeys(judge["card"] for judge in judges if judge["status"] == "measured")
    return [JudgeCard(store, id).to_dict() for id in ids if exists(store, CARDS, id)]


def matches_judge_facts(*sets: Matches | None) -> list[Facts]:
    """The same of the judges of matches, each once; their win rates are not corrected."""
    if not any(matches is not None and matches.manifest["provenance"].get("judges") for matches in sets):
        return []
    from evaluand.matches.labelled_sets import standings_of  # on use: needs NumPy

    found: dict[str, Facts] = {}
    for matches in sets:
        if matches is None or not matches.manifest["provenance"].get("judges"):
            continue
        for judge, standing in standings_of(matches):
            found[judge.digest] = describe_standing(standing, judge) | {"task": None} | _UNCORRECTED
    return [*found.values()]


_UNCORRECTED: Final[Facts] = {"raw": None, "corrected": None, "overlap": ""}


def describe_standing(standing: ScorerStanding, judge: JudgeIdentity) -> Facts:
    """A judge, whether it was measured, and what it asks."""
    return {
        "judge": standing.name,
        "status": standing.status,
        "text": standing.text,
        "card": standing.card_id,
        "changed": list(standing.changed),
        "asked": [_describe_question(question, judge.parts) for question in questions_of(judge.spec)],
    }


def _describe_question(question: Mapping[str, Any], parts: Mapping[str, str]) -> Facts:
    """Model, protocol, rubric and options of a question of a judge.

    Args:
        parts: of the judge, which name its rubrics.
    """
    digest, model = str(question.get("rubric")), question.get("model")
    model = model if isinstance(model, Mapping) else {}
    titles = (text.removesuffix(f" {digest}") for text in parts.values() if text.endswith(f" {digest}"))
    return {
        "rubric": digest,
        "title": next(titles, None),
        "model": model.get("model"),
        "version": model.get("version"),
        "protocol": model.get("protocol", "chat"),
        "samples": question.get("samples"),
        "from_logprobs": question.get("from_logprobs"),
    }


def rubric_facts(manifests: Iterable[Manifest]) -> list[Facts]:
    """The rubrics of judges, word for word, each once: of evaluations and matches.

    Returns:
        Of each rubric: `judge`, `question` (of a tree, else None), `title`, `rubric` (its digest), `messages` (those
        before the material), `material` (variables, or a template) and `dividing` (the request for the parts of a
        text, or None).
    """
    found: dict[tuple[str, str | None, str], Facts] = {}
    for manifest in manifests:
        if not manifest["provenance"].get("rubrics"):
            continue
        from evaluand.judges.stored_rubric import stored_rubrics  # on use, as above

        for judge, rubrics in stored_rubrics(manifest).items():
            for each in rubrics:
                found[judge, each.question, each.digest] = {
                    "judge": judge,
                    "question": each.question,
                    "title": each.title,
                    "rubric": each.digest,
                    "messages": each.opening,
                    "material": each.content["material"],
                    "dividing": each.dividing_text,
                }
    return [*found.values()]


def rubric_changes(manifests: Iterable[Manifest]) -> list[str]:
    """How the stored rubrics of judges differ from those by which they asked, a sentence for each judge."""
    found: list[str] = []
    for manifest in manifests:
        if manifest["provenance"].get("judges"):
            from evaluand.judges.stored_rubric import find_changed_rubrics  # on use, as above

            found += find_changed_rubrics(manifest).values()
    return [*dict.fromkeys(found)]


def _number(estimate: Estimate) -> dict[str, Any]:
    ends = {name: getattr(estimate, name) for name in ("value", "low", "high")}
    return {name: None if end != end else end for name, end in ends.items()} | {"reason": estimate.reason}
