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
    file        its content, where a path or a short text that is reached names an existing one, and where code reads it
                under a name whose parts are all known (`evaluand.core.fingerprint.paths` lists how); a folder that is
                listed counts with the names and contents of what is in it. What code only writes to does not count
                (`evaluand.core.fingerprint.writing` lists how): what a task logs must not make it another task
    the rest    third-party, standard-library and evaluand code by name: versions of packages are provenance

What the code does not tell leaves the fingerprint *unpinned*, with a sentence that says what, where and what to do:

    state       a lock, a client or a generator, which cannot be read as data
    files       a read, listing or question (`exists`, `stat`) whose name is known only when it runs: from a parameter,
                the input, another function's result, the content of a file, an attribute that a method sets, a list or
                dictionary with which code does more than look at it; also `open` and its like under another name or
                handed on. A helper's parameter is known where all its calls are. What the same function made with
                `tempfile` is known. Declaring `files` pins such code: its user has said what it reads
    templates   a folder given to Jinja's `FileSystemLoader` counts with all that is in it
    environment `os.environ`, `os.getenv`, `sys.argv`, `input`, where a function reads them; a global, default or class
                attribute made of them counts by its value, and setting the environment is no reading
    others      services, databases, models loaded by name, other programs; their classes of errors are harmless
    chance      the shared generators of `random` and `numpy.random`, those made without a seed or with a clock's, or
                whose maker is handed on, `secrets`, `uuid4`, `os.urandom`; `random.Random(seed)` and
                `default_rng(seed)` are pinned
    dates       `datetime.now`, `date.today`, `time.localtime` and their like, also where a clock gives them the moment.
                Clocks (`time.time`, `perf_counter`, `monotonic`, `sleep`) are pinned, because they are there to measure
    machine     the process, thread and machine, `hash`, `id`, the names of temporary files, the current folder's change
    code        `eval`, `exec`, `compile`, `globals`, `pickle.loads`, `ctypes`, and modules and their names chosen while
                running

`evaluand.core.fingerprint.outside` has the names. Only what first-party code uses by name counts, not what a library
does with it. A name for a file that is only written may be made of the date, chance or the environment, and so may
what is only printed, logged or traced (`evaluand.core.fingerprint.influence` lists how). Loggers are taken as having no
influence. A global that a function itself assigns (a client made on first use) counts by the statement that first sets
it, as its value is made by code that is covered already.

The traversal is in `walk` (values) and `code` (functions, classes, names), what it has found in `parts` and `files`;
`reach` judges what code reaches beyond itself, and `lookup` finds the files it reads. Each of the others answers one
question: where code comes from (`homes`), what wraps it (`wrapping`), which text is its source (`source`), what that
says (`syntax`, `writing`, `reads`, `influence`) and what its bytecode says (`bytecode`), what sets names (`bindings`)
and attributes (`changes`) and what they stand for (`names`, `scopes`), what an expression gives (`paths`), which data
are plain (`plain`) and which names leave code unpinned (`outside`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.fingerprint.walk import Fingerprint, Walk

__all__ = ["Fingerprint", "Identity", "code_identity", "explain", "fingerprint"]


def fingerprint(obj: Callable[..., Any] | object, *, files: Sequence[str | os.PathLike[str]] = ()) -> Fingerprint:
    """The fingerprint of a function, class or instance as it is now.

    Args:
        obj: what is to be identified.
        files: files and folders it depends on beyond those its code names, relative to the current directory or to
            the folder of the code. Where there are any, they stand for all that is read under names not known.

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

    def reasons(self, *, in_yaml: bool) -> list[str]:
        """Why it is unpinned, with what to declare as it is written in Python, or in an experiment file.

        Example:
            >>> Identity({}, False, ("f: asks a service; declare version=... to pin it",)).reasons(in_yaml=True)
            ['f: asks a service; declare version: "1" in its entry to pin it']
        """
        if not in_yaml:
            return list(self.unpinned)
        written = (why.replace("version=...", 'version: "1" in its entry') for why in self.unpinned)
        return [why.replace("files=[...]", "files: [...]") for why in written]


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
