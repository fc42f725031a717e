"""Feedbacks in other processes: the form in which they are stored, and how they are loaded from it.

Code that is imported by a name in a store is chosen by whoever made the store. So only evaluand's providers, common
aggregates, modules that the user allows and, in a recording that this user has begun, first-party modules are imported;
and a loaded feedback must have the identity of the one that was recorded.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from evaluand.core.errors import SpecError, TaskError
from evaluand.core.fingerprint import Identity
from evaluand.core.fingerprint.homes import is_first_party
from evaluand.evaluation.feedback.feedback import Feedback
from evaluand.evaluation.feedback.references import NotAllowed, asks_services
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.store.ownership import is_own
from evaluand.store.store import Manifest, Store


def stored_form(name: str, scorer: Scorer, *, required: bool) -> Any:
    """A feedback as a recording stores it; None if that is impossible, or a SpecError if it is `required`."""
    try:
        if hasattr(scorer, "to_json"):
            return scorer.to_json(check=required)
    except SpecError as error:
        if required:
            raise SpecError(f"feedback {name!r} cannot be deferred: {error}") from None
        return None
    if required:
        raise SpecError(f"feedback {name!r} cannot be deferred: it is not a Feedback, so it cannot be stored")
    return None


class ForeignCode(SpecError):
    """A recording that somebody else has begun, or in another store, names code that is not allowed by name."""


class MissingModule(SpecError):
    """A feedback is in a module that is not found from the current folder."""


def load_feedbacks(store: Store, manifest: Manifest, *, allow: Sequence[str] = ()) -> dict[str, Scorer]:
    """The feedbacks of a recording by name; see `load_feedback`."""
    return {name: load_feedback(store, manifest, name, allow=allow) for name in manifest["spec"]["feedbacks"]}


def load_feedback(store: Store, manifest: Manifest, name: str, *, allow: Sequence[str] = ()) -> Scorer:
    """A feedback of a recording, loaded from the definition in the manifest; `allow` as in `work`.

    Raises:
        ForeignCode: the recording comes from somebody else, and names code that is not in `allow`.
        MissingModule: a module of its code is not found from the current folder.
        SpecError: its code cannot be imported, may not be, or has changed.
    """
    form = manifest["provenance"]["forms"].get(name)
    if form is None:
        raise SpecError(f"feedback {name!r} cannot be imported: it was not defined at the top of a module")
    own = is_own(store, manifest)
    modules = sorted(_collect_modules(form)) if own else []
    missing = next((module for module in modules if module not in sys.modules and not _module_places(module)), None)
    if missing is not None:
        hint = f"no module {missing} is found from {os.getcwd()}; start in the folder where it is"
        raise MissingModule(f"feedback {name!r} cannot be imported: {hint}")
    try:
        unchecked = {**form, "identity": None}  # the manifest has it, and is compared below
        feedback = Feedback.from_json(unchecked, modules=[*filter(_may_be_own, modules), *allow])
    except NotAllowed as error:
        why = "it is not first-party code" if own else "the recording was not begun by you in this store"
        raise (SpecError if own else ForeignCode)(
            f"feedback {name!r} cannot be imported: {error.reference} may not be imported: {why}",
            python=f"allow it by name: allow=[{error.module!r}]",
            command=f"allow it by name: --allow {error.module}",
        ) from None
    except SpecError as error:
        raise SpecError(f"feedback {name!r} cannot be imported: {error}") from None
    if feedback.identify().spec != manifest["spec"]["feedbacks"][name]:
        raise SpecError(f"feedback {name!r} has changed since the recording was opened")
    return feedback


def _may_be_own(module: str) -> bool:
    """Whether code of a module is imported for a recording that this user has begun."""
    return _is_first_party(module) or asks_services(module)


class Absent(Scorer):
    """Replaces a feedback that cannot be loaded: it has its identity, and fails for records without a score."""

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


def _collect_modules(form: Any) -> set[str]:
    """The modules of the code that a stored form names."""
    if isinstance(form, list):
        return set().union(*map(_collect_modules, form))
    if not isinstance(form, Mapping):
        return set()
    names = {form.get(key) for key in ("function", "class")}
    modules = {name.partition(":")[0] for name in names if isinstance(name, str)}
    return modules.union(*map(_collect_modules, form.values()))


def _is_first_party(module: str) -> bool:
    """Whether a module is first-party code, judged without importing anything."""
    places = _module_places(module)
    return bool(places) and all(place is not None and is_first_party(place) for place in places)


def _module_places(module: str) -> list[str | None]:
    """The places of a module's package; empty if it does not exist, None for built-in modules."""
    try:
        found = find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return []
    if found is None:
        return []
    if found.origin:
        return [found.origin if found.has_location else None]
    return [*(found.submodule_search_locations or ())]
