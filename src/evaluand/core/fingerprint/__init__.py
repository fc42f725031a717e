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
    file        its content, where it is declared with `files`
    the rest    third-party, standard-library and evaluand code by name: versions of packages are provenance

Files that code opens are not part of it. They are observed while calls run (`evaluand.engine.observation`), stored with
the answers, and compared before an answer is reused. Files that were read before, at import or when an object was
created, count by the resulting values of globals and attributes.

Code is *unpinned*, with a message that says what, where and what to do, if its result may differ next time:

    unknown     it uses third-party code that is not listed as giving the same each time
    chance      what draws at random without a seed: the shared generators of `random` and `numpy.random`, whatever
                takes a `random_state`, `seed` or `rng` and gets none or one that may be None, `sample` and `rvs` of any
                object; and a set used where its order may count, unless PYTHONHASHSEED is set
    state       a lock, a client or a generator, which cannot be read as data
    files       what reads files by native code, asks whether they exist, or works in other processes: none of these
                can be observed. Declaring `files` pins such code, since its user states what it reads
    environment `os.environ`, `os.getenv`, `sys.argv`, `input`, where a function reads them; a global, default or class
                attribute made of them counts by its value; a credential counts by the name of its variable (`secrets`)
    others      services, databases, models loaded by name, other programs; their classes of errors are harmless
    dates       `datetime.now`, `date.today`, `time.localtime`, `time.time`, `perf_counter` and their like
    machine     the process, thread and machine, `hash`, `id`, the names of temporary files, the current folder's change
    code        `eval`, `exec`, `compile`, `globals`, `pickle.loads`, `ctypes`, and modules and names chosen while
                running

`evaluand.core.fingerprint.outside` is the table of names. Only what first-party code uses by name counts, not what a
library does with it. What is only printed, logged or traced may be made of the date, chance or the environment. Loggers
are taken as having no influence. A global that a function itself assigns (a client made on first use) counts by the
statement that first sets it, as its value is made by code that is covered already.

The traversal is in `walk` (values) and `code` (functions, classes, names), what it has found in `parts` and `files`,
and what it says in `facts`.
`lookup` decides what makes code unpinned, by the names in each definition (`scope`) and the table `outside`; `order`
where a set may stand. Each of the others answers one question: where code comes from (`homes`), what wraps it
(`wrapping`), which text is its source (`source`), what names its syntax (`syntax`) and bytecode (`bytecode`) use, to
what the names refer (`names`), and which data are plain (`plain`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaluand.core.errors import plural
from evaluand.core.fingerprint.facts import CodeFacts, Fingerprint

__all__ = ["CodeFacts", "Fingerprint", "Identity", "code_identity", "explain", "fingerprint", "summarize_reasons"]


def fingerprint(
    obj: Callable[..., Any] | object,
    *,
    files: Sequence[str | os.PathLike[str]] = (),
    seeds_estimators: bool = False,
    ignores_changes: bool = False,
) -> Fingerprint:
    """The fingerprint of a function, class or instance as it is now.

    Args:
        obj: the object to identify.
        files: files and folders it depends on, relative to the current directory or to the folder of the code. If
            there are any, they replace everything that cannot be observed.
        seeds_estimators: whoever calls it sets each `random_state` of an estimator that is None.
        ignores_changes: whether what the code itself changes counts as it was when this process first read it.

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
    from evaluand.core.fingerprint.walk import Walk  # on use: what only reads results does without

    return Walk(seeds_estimators, ignores_changes).run(obj, files)


def explain(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What changed between the parts of two fingerprints, in words.

    Example:
        >>> explain({"app.answer": "1", "app.x": "2"}, {"app.answer": "3", "app.helper": "4"})
        ['app.answer changed', 'app.helper is new', 'app.x was removed']
    """
    changed = [f"{name} changed" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    added = [f"{name} is new" for name in sorted(new.keys() - old.keys())]
    return changed + added + [f"{name} was removed" for name in sorted(old.keys() - new.keys())]


def summarize_reasons(reasons: Sequence[str]) -> str:
    """The first reason why code is unpinned and the number of others: one declared version settles all of them.

    Example:
        >>> summarize_reasons(["f asks a service", "g asks a database", "h draws at random"])
        'f asks a service (and 2 more reasons)'
    """
    first, *others = reasons
    return f"{first} (and {plural(len(others), 'more reason')})" if others else first


@dataclass(frozen=True)
class Identity:
    """What a task or scorer is, as far as results are concerned.

    Attributes:
        spec: the data that its identity is made of.
        pinned: whether the spec fully says how it behaves.
        unpinned: why not.
        parts: what the spec's fingerprint was made of, for explaining changes.
        facts: what observing its calls needs to know, where code was fingerprinted.
        covered: what a declared version stands for: what would leave the code unpinned without it.
    """

    spec: Mapping[str, Any]
    pinned: bool = True
    unpinned: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    facts: CodeFacts | None = field(default=None, compare=False, repr=False)
    covered: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def observed(self) -> CodeFacts | None:
        """What observing its calls needs to know; None where it has no code whose calls are to be observed."""
        return self.facts or (CodeFacts() if _has_fingerprint(self.spec) else None)

    def versioned(self, version: str | None) -> Identity:
        """The same with a declared version beside it, which stands for what leaves the code unpinned.

        Example:
            >>> Identity({"kind": "f"}, False, ("f: asks a service; declare ...",)).versioned("2").covered
            ('f: asks a service',)
        """
        if version is None:
            return self
        facts = self.facts and replace(self.facts, is_versioned=True)
        covered = tuple(why.partition(";")[0] for why in self.unpinned)
        return Identity({**self.spec, "version": version}, True, (), self.parts, facts, covered)

    def joined(self, parts: Mapping[str, Identity]) -> Identity:
        """The identity of something that consists of this and of other code, whose specs are added under their names.

        Example:
            >>> Identity({"kind": "chat"}).joined({"tool": Identity({"kind": "f"}, False, ("f: draws",))}).unpinned
            ('f: draws',)
        """
        every = [self, *parts.values()]
        return Identity(
            {**self.spec, **{name: identity.spec for name, identity in parts.items()}},
            all(identity.pinned for identity in every),
            tuple(why for identity in every for why in identity.unpinned),
            {name: digest for identity in every for name, digest in identity.parts.items()},
            CodeFacts.combine(identity.facts for identity in every),
            tuple(why for identity in every for why in identity.covered),
        )

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
    *,
    version: str | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    seeds_estimators: bool = False,
    **more: Any,
) -> Identity:
    """The identity of something written in code: its fingerprint, and the declared version beside it.

    Example:
        >>> sorted(code_identity("function", len, version="2", items=False).spec)
        ['fingerprint', 'items', 'kind', 'version']
    """
    print_ = fingerprint(code, files=files, seeds_estimators=seeds_estimators, ignores_changes=version is not None)
    spec = {"kind": kind, "fingerprint": print_.digest, **more}
    parts = {**print_.parts, **print_.files}
    return Identity(spec, print_.pinned, print_.unpinned, parts, print_.facts).versioned(version)


def _has_fingerprint(spec: Any) -> bool:
    """Whether some data hold the fingerprint of code, at any depth."""
    if isinstance(spec, Mapping):
        return "fingerprint" in spec or any(map(_has_fingerprint, spec.values()))
    return isinstance(spec, list | tuple) and any(map(_has_fingerprint, spec))
