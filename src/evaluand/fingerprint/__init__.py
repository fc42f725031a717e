"""The identity of code: a digest of a function or object and of everything first-party that it reaches.

Results may be reused only while the code that made them is the same, so a fingerprint covers the function and, through
the names it uses, every first-party function, class and constant, with closures, defaults and the state of instances,
and the content of the files it names. It leaves out what changes nothing: comments, formatting, unrelated code in the
same module, the folder in which the project lies, the name under which a module was loaded, files that are only
written.

    function    its source without comments; its bytecode where there is no source, or where the source on disk is not
                what runs (a file edited after import must not lend its name to results of the old code)
    class       its source, its first-party bases, its methods and the present values of its attributes
    instance    its class and its state as copying would read it (`__getstate__`, `__reduce_ex__`), or the data that its
                `__fingerprint__()` returns; nothing is pickled
    constant    its present value; the order of a dictionary counts, because prompts are built by iterating over it
    file        its content, where a path or a short text that is reached names an existing one, unless the code does
                nothing with the name but write to the file (`evaluand.fingerprint.writing` lists how): what a task
                logs must not make it another task
    the rest    third-party, standard-library and evaluand code by name: versions of packages are provenance

A lock, a client or a generator cannot be read as data: it leaves the fingerprint *unpinned*, with a sentence that says
what and where. Loggers are taken as having no influence. A global that a function itself assigns (a client made on
first use) counts by the statement that first sets it, as its value is made by code that is covered already.

The traversal is in `walk` (values) and `code` (functions, classes, names), what it has found in `parts` and `files`.
Each of the others answers one question: where code comes from (`homes`), what wraps it (`wrapping`), which text is its
source (`source`), what that says (`syntax`, `writing`) and what its bytecode says (`bytecode`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.fingerprint.walk import Fingerprint, Walk

__all__ = ["Fingerprint", "Identity", "code_identity", "explain", "fingerprint"]


def fingerprint(obj: Callable[..., Any] | object, *, files: Sequence[str | os.PathLike[str]] = ()) -> Fingerprint:
    """The fingerprint of a function, class or instance as it is now.

    Args:
        obj: what is to be identified.
        files: files and folders it depends on beyond those its code names, relative to the current directory or to
            the folder of the code.

    Raises:
        SpecError: one of `files` does not exist or cannot be read.

    Example:
        >>> def shout(text, mark="!"):
        ...     return text.upper() + mark
        >>> print_ = fingerprint(shout)
        >>> print_.pinned, len(print_.digest)
        (True, 32)
        >>> shout.__defaults__ = ("?",)
        >>> fingerprint(shout).digest == print_.digest
        False
    """
    return Walk().run(obj, files)


def explain(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What changed between the parts of two fingerprints, in words.

    Example:
        >>> explain({"app.answer": "1", "app.x": "2"}, {"app.answer": "3", "app.helper": "4"})
        ['app.answer changed', 'app.helper is new', 'app.x is gone']
    """
    changed = [f"{name} changed" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    added = [f"{name} is new" for name in sorted(new.keys() - old.keys())]
    return changed + added + [f"{name} is gone" for name in sorted(old.keys() - new.keys())]


@dataclass(frozen=True)
class Identity:
    """What a task or scorer is, as far as results are concerned.

    Attributes:
        spec: the data that its identity is made of.
        pinned: whether the spec fully says how it behaves.
        unpinned: why not.
        parts: what the spec's fingerprint was made of, for explaining changes.
    """

    spec: Mapping[str, Any]
    pinned: bool = True
    unpinned: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)


def code_identity(
    kind: str,
    code: Any,
    name: str,
    *,
    version: str | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    **more: Any,
) -> Identity:
    """The identity of something written in code: by name and declared version, else by fingerprint.

    Example:
        >>> code_identity("function", len, "length", version="2").spec
        {'kind': 'function', 'name': 'length', 'version': '2'}
        >>> sorted(code_identity("function", len, "length", items=False).spec)
        ['fingerprint', 'items', 'kind']
    """
    if version is not None:
        return Identity({"kind": kind, "name": name, "version": version, **more})
    print_ = fingerprint(code, files=files)
    parts = {**print_.parts, **print_.files}
    return Identity({"kind": kind, "fingerprint": print_.digest, **more}, print_.pinned, print_.unpinned, parts)
