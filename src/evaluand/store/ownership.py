"""Whether open work was begun by this user in this store, or came with a store from somebody else.

To continue open work, code is executed that its manifest names: an experiment file, the modules of feedbacks. Whoever
made the store has written these names. So a manifest that is opened gets a message authentication code with a key that
only this user has, over the names and the place of the store. It is provenance: ids and digests do not depend on it.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from evaluand.core.errors import plural, warn
from evaluand.core.identity import encode
from evaluand.core.user import config_folder, has_key, keyed_digest
from evaluand.store.kinds import singular

if TYPE_CHECKING:
    from evaluand.store.store import Manifest, Store

MAC: Final = "mac"
"""The key of the code in the provenance."""
UNPROVEN: Final = "unproven_results"
"""The key, in the provenance of sealed work, of how many stored results were used that this user may not have made."""


def with_mac(store: Store, manifest: Manifest) -> Manifest:
    """A manifest that is about to be opened, with its message authentication code.

    Without it if the user has no key, and in memory, where nothing comes from elsewhere.
    """
    if not hasattr(store, "top"):
        return manifest
    return manifest | {"provenance": manifest["provenance"] | {MAC: keyed_digest(_content(store, manifest))}}


def is_own(store: Store, manifest: Manifest) -> bool:
    """Whether this user has begun the work of an open artifact in this store, where it is now."""
    if not hasattr(store, "top"):
        return True
    provenance = manifest.get("provenance")
    if not isinstance(provenance, dict) or MAC not in provenance or not has_key():
        return False
    expected, found = keyed_digest(_content(store, manifest)), provenance[MAC]
    return isinstance(found, str) and expected is not None and hmac.compare_digest(found.encode(), expected.encode())


def describe_foreign() -> str:
    """Why work does not count as that of the user."""
    lost = "" if has_key() else f", or your key in {config_folder()} was removed"
    return f"was not begun by you in this store{lost}"


def note_foreign(store: Store, manifest: Manifest, stored: int, what: str) -> Manifest:
    """The manifest of open work that is continued; says so if somebody else may have made its stored results.

    The user gets a warning, and the provenance of the manifest has the number of all so far as `unproven_results`.

    Args:
        stored: the number of results in its journal.
        what: what each of them is, such as "call".
    """
    if not stored or is_own(store, manifest):
        return manifest
    artifact = f"{singular(manifest['kind'])} {manifest['id'][:12]}"
    results = f"{plural(stored, what)} stored in it {'is' if stored == 1 else 'are'} used as if made by you"
    warn(f"{artifact} {describe_foreign()}: {results}; to repeat every call and grade, add --fresh (fresh=True)")
    earlier = manifest["provenance"].get(UNPROVEN)
    total = stored + (earlier if isinstance(earlier, int) else 0)
    return manifest | {"provenance": manifest["provenance"] | {UNPROVEN: total}}


def _content(store: Any, manifest: Mapping[str, Any]) -> bytes:
    provenance = {name: value for name, value in manifest["provenance"].items() if name != MAC}
    place = store.top.place
    return encode(["evaluand: begun by this user", place, manifest["kind"], manifest["id"], provenance])
