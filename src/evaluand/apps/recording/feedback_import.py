"""Feedbacks in other processes: in which form they are stored, and how they are made again of it.

What is imported by a name that stands in a store is code that the store chooses. So only first-party modules are,
evaluand's providers and common aggregates, and whatever else the one who works has allowed; and a feedback that is made
again must be the one that was recorded, by its identity.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from evaluand.core.errors import SpecError, TaskError
from evaluand.core.fingerprint import Identity
from evaluand.core.fingerprint.homes import is_first_party
from evaluand.evaluation.feedback.feedback import Feedback
from evaluand.evaluation.feedback.references import NotAllowed
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.store.store import Manifest


def stored_form(name: str, scorer: Scorer, *, required: bool) -> Any:
    """A feedback as a recording keeps it; None where it has no such form.

    Raises:
        SpecError: it has none, and has to.
    """
    try:
        if hasattr(scorer, "to_json"):
            return scorer.to_json()
    except SpecError as error:
        if required:
            raise SpecError(f"feedback {name!r} cannot be deferred: {error}") from None
        return None
    if required:
        raise SpecError(f"feedback {name!r} cannot be deferred: it is no feedback function, and cannot be stored")
    return None


def all_loaded(manifest: Manifest, *, allow: Sequence[str] = ()) -> dict[str, Scorer]:
    """The feedbacks of a recording by name; see `loaded`."""
    return {name: loaded(manifest, name, allow=allow) for name in manifest["spec"]["feedbacks"]}


def loaded(manifest: Manifest, name: str, *, allow: Sequence[str] = ()) -> Scorer:
    """A feedback of a recording, made again of what the manifest says.

    Args:
        manifest: of the recording.
        name: of the feedback.
        allow: modules and packages that may be imported beside first-party ones.

    Raises:
        SpecError: it cannot be imported, may not be, or is not what it was.
    """
    form = manifest["provenance"]["forms"].get(name)
    if form is None:
        raise SpecError(f"feedback {name!r} cannot be imported: it did not stand at the top of a module")
    modules = sorted(_modules(form))
    gone = next((module for module in modules if module not in sys.modules and not _places(module)), None)
    if gone is not None:
        told = f"no module {gone} is found from {os.getcwd()}; start in the folder where it is"
        raise SpecError(f"feedback {name!r} cannot be imported: {told}")
    try:
        feedback = Feedback.from_json(form, modules=[*filter(_is_own, modules), *allow])
    except NotAllowed as error:
        raise SpecError(
            f"feedback {name!r} cannot be imported: {error.reference} may not be imported: it is no code of yours",
            python=f"allow it by name: allow=[{error.module!r}]",
            command=f"allow it by name: --allow {error.module}",
        ) from None
    except SpecError as error:
        raise SpecError(f"feedback {name!r} cannot be imported: {error}") from None
    if feedback.identify().spec != manifest["spec"]["feedbacks"][name]:
        raise SpecError(f"feedback {name!r} is not what it was when the recording was opened: its code has changed")
    return feedback


class Absent(Scorer):
    """In place of a feedback that cannot be had: it has its identity, and fails on what it has not judged before."""

    kind = "absent"

    def __init__(self, manifest: Manifest, name: str, why: str) -> None:
        self._spec, self._why = manifest["spec"]["feedbacks"][name], why
        self._columns = manifest["provenance"]["columns"][name]
        self._ranges = manifest["provenance"].get("ranges", {}).get(name, {})
        self._pinned = manifest["pinned"]

    @property
    def columns(self) -> Mapping[str, str]:
        return self._columns  # type: ignore[no-any-return]

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:  # type: ignore[override]
        return self._ranges  # type: ignore[no-any-return]

    def identify(self) -> Identity:
        return Identity(self._spec, self._pinned, () if self._pinned else ("it was not pinned when it was asked",))

    def score(self, output: Any, expected: Any) -> Score:
        raise TaskError(f"was not judged before the recording was closed, and {self._why}")


def _modules(form: Any) -> set[str]:
    """The modules that code is named of in a stored form."""
    if isinstance(form, list):
        return set().union(*map(_modules, form))
    if not isinstance(form, Mapping):
        return set()
    named = {form.get(key) for key in ("function", "class")}
    return {name.partition(":")[0] for name in named if isinstance(name, str)}.union(*map(_modules, form.values()))


def _is_own(module: str) -> bool:
    """Whether a module is first-party code, as far as can be told without importing anything."""
    places = _places(module)
    return bool(places) and all(place is not None and is_first_party(place) for place in places)


def _places(module: str) -> list[str | None]:
    """Where the package of a module is; empty where there is none, and None for what comes with the interpreter."""
    try:
        found = find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return []
    if found is None:
        return []
    if found.origin:
        return [found.origin if found.has_location else None]
    return [*(found.submodule_search_locations or ())]
