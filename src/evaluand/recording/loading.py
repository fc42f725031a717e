"""Feedbacks in other processes: in which form they are stored, and how they are made again of it.

What is imported by a name that stands in a store is code that the store chooses. So only first-party modules and
evaluand's own are, and whatever else the one who works has allowed; and a feedback that is made again must be the one
that was recorded, by its identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from evaluand.errors import SpecError
from evaluand.feedback import Feedback
from evaluand.fingerprint.homes import is_first_party
from evaluand.scorer import Scorer
from evaluand.store import Manifest


def stored_form(name: str, scorer: Scorer, *, required: bool) -> Any:
    """A feedback as a recording keeps it; None where it has no such form.

    Raises:
        SpecError: it has none, and has to.
    """
    try:
        if isinstance(scorer, Feedback):
            return scorer.to_json()
    except SpecError as error:
        if required:
            raise SpecError(f"feedback {name!r} cannot be deferred: {error}") from None
        return None
    if required:
        raise SpecError(f"feedback {name!r} cannot be deferred: it is no Feedback, and cannot be stored")
    return None


def loaded(manifest: Manifest, *, allow: Sequence[str] = ()) -> dict[str, Scorer]:
    """The feedbacks of a recording, made again of what its manifest says.

    Raises:
        SpecError: one cannot be imported, may not be, or is not what it was.
    """
    forms = manifest["provenance"]["forms"]
    return {name: _loaded(name, forms.get(name), spec, allow) for name, spec in manifest["spec"]["feedbacks"].items()}


def _loaded(name: str, form: Any, spec: Mapping[str, Any], allow: Sequence[str]) -> Scorer:
    if form is None:
        raise SpecError(f"feedback {name!r} cannot be imported, since it is not at the top of a module")
    for module in _modules(form):
        _check_module(name, module, allow)
    feedback = Feedback.from_json(form)
    if feedback.identify().spec != spec:
        raise SpecError(f"feedback {name!r} is not what it was when the recording was opened: its code has changed")
    return feedback


def _check_module(name: str, module: str, allow: Sequence[str]) -> None:
    top = module.partition(".")[0]
    if top == "evaluand" or any(module == allowed or module.startswith(f"{allowed}.") for allowed in allow):
        return
    try:
        found = find_spec(top)
    except (ImportError, ValueError) as error:
        raise SpecError(f"feedback {name!r}: {module} cannot be imported here: {error}") from None
    if found is None:
        raise SpecError(f"feedback {name!r}: there is no module {module} here; work where the app was started")
    places = [found.origin] if found.origin and found.has_location else [*(found.submodule_search_locations or ())]
    if not places or not all(is_first_party(place) for place in places):
        raise SpecError(
            f"feedback {name!r} is to import {module}, which is not first-party code; allow it if you trust who made"
            f" the recording: --allow {top}"
        )
