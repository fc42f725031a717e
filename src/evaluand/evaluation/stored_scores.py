"""Scores that a run has, which an evaluation by further scorers holds too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evaluand.core.fingerprint import Identity
from evaluand.evaluation.score_tables import ScoreTable, row_texts
from evaluand.evaluation.scorer import Scorer
from evaluand.run.earlier_work import kept_in
from evaluand.store.store import Draft

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation


class StoredScores(Scorer):
    """The scores that one scorer gave a run, taken over as they are: nothing is graded, and nothing is paid for twice.

    Args:
        evaluation: has them.
        name: of the scorer there.
    """

    kind = "stored"

    def __init__(self, evaluation: Evaluation, name: str) -> None:
        self.evaluation, self.name = evaluation, name
        made = evaluation.manifest["provenance"]
        self.is_judge = name in (made.get("judges") or ())  # type: ignore[misc]
        self.ranges = evaluation.ranges.get(name, {})  # type: ignore[misc]

    @property
    def rubrics(self) -> Sequence[Mapping[str, Any]]:
        return (self.evaluation.manifest["provenance"].get("rubrics") or {}).get(self.name, ())  # type: ignore[no-any-return]

    @property
    def sample(self) -> Mapping[str, Any] | None:
        """The sample of the rows that were graded, as the evaluation says it; None if it was all."""
        return self.evaluation.manifest["spec"].get("samples", {}).get(self.name)  # type: ignore[no-any-return]

    @property
    def usage(self) -> dict[str, Any] | None:
        """What the grades have used, as the evaluation says it."""
        return self.evaluation.manifest.get("usage", {}).get(self.name)  # type: ignore[no-any-return]

    @property
    def kept(self) -> list[dict[str, Any]]:
        """Which of them were kept from before a change of the scorer, as the evaluation says it."""
        return kept_in(self.evaluation.manifest, f"scores of {self.name}")

    def identify(self) -> Identity:
        """The identity that it had."""
        made, begin = self.evaluation.manifest["provenance"], f"{self.name}: "
        unpinned = tuple(why.removeprefix(begin) for why in made.get("unpinned") or () if why.startswith(begin))
        parts = (made.get("parts") or {}).get(self.name) or {}
        return Identity(self.evaluation.manifest["spec"]["scorers"][self.name], not unpinned, unpinned, parts)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return next(self.evaluation.batches(self.name)).schema

    def write(self, table: ScoreTable, draft: Draft) -> None:
        """Writes the scores to a table, and the files that were opened for them to its draft."""
        for batch in self.evaluation.batches(self.name):
            table.add_batch(batch, row_texts(batch))
        store, inputs = self.evaluation.store, f"inputs/{self.name}"
        for batch in store.read("evaluations", self.evaluation.id, inputs) if self._has(inputs) else ():
            draft.append(inputs, batch)

    def _has(self, table: str) -> bool:
        return table in self.evaluation.manifest["tables"]
