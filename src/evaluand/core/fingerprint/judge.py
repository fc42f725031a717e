"""Whether code gives the same answer each time, judged name by name: each finding leaves it unpinned.

Only what first-party code uses by name counts, not what a library does with it. What may be random, such as `sample` of
an object whose type is not known, is taken to be.
"""

from __future__ import annotations

import ast
import inspect
import re
import types
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from evaluand.core.fingerprint.bytecode import Uses, nested
from evaluand.core.fingerprint.clocks import measures
from evaluand.core.fingerprint.flow import Flow, Scope
from evaluand.core.fingerprint.homes import MISSING, Homes, imported
from evaluand.core.fingerprint.memory import remembers
from evaluand.core.fingerprint.names import CodeNames, closure_of, full_name_of, static_attribute
from evaluand.core.fingerprint.outside import (
    ANYTHING,
    ASKS,
    CHANCE,
    CLOCKS,
    DATE,
    ENVIRONMENT,
    FILLED,
    GLOBS,
    LIFTED_BY_FILES,
    METHODS,
    NATIVE,
    NOW,
    PROCESSES,
    SEEDS,
    SHOWN_IS_HARMLESS,
    UNSEEDED,
    UNSET,
    WANTING,
    advice,
    hands_on,
    is_caching,
    shared_generators_of,
    why_outside,
)
from evaluand.core.fingerprint.parts import PIN, Place
from evaluand.core.fingerprint.seeds import may_be_none, seed_in
from evaluand.core.fingerprint.sets import SET_MAKERS, SET_TYPES, Sets, hash_seed
from evaluand.core.fingerprint.shown import is_shown
from evaluand.core.fingerprint.syntax import Chain, Definition, Import, chain_of
from evaluand.core.fingerprint.wrapping import innermost, is_a, is_cached, is_function, is_readable, name_of

_IMPORTING = frozenset(("importlib.import_module", "builtins.__import__"))
_CHECKING = frozenset(("builtins.isinstance", "builtins.issubclass"))
_FACTORIES = frozenset(("converter", "default_factory", "factory"))
_OWN_GENERATORS = ("random.", "numpy.random.")  # whose methods are as good as the seed they were made with
_IDENTITY = frozenset(("builtins.hash", "builtins.id"))
COMPUTED_MODULE = "imports a module whose name is known only when it runs"
COMPUTED_NAME = "uses an attribute whose name is known only when it runs"
_PASSED_ON_UNKNOWN = {  # what does anything where it is called by somebody else
    **dict.fromkeys(_IMPORTING, COMPUTED_MODULE),
    **dict.fromkeys(CLOCKS, DATE),
    "builtins.getattr": COMPUTED_NAME,
}
SET_ORDER = "differs between processes, which hash texts at random"
SET_ADVICE = f"use sorted(...), or set PYTHONHASHSEED, or {PIN}"


_met_empty: weakref.WeakSet[Any] = weakref.WeakSet()  # cached functions: what fills them later is observed


class Judge:
    """Judges what one traversal reaches.

    Args:
        homes: where code comes from.
        unpinned: where findings go: key → sentence.
        seeds_estimators: whoever calls the code sets each `random_state` that is None.

    Attributes:
        seeds: seeds that must not be None, with what they are for and why that counts.
        clocks: calls of clocks, whose time must only be measured with.
        remembers: whether the code may keep something between calls.
        draws: the modules from whose shared generators the code of others that it uses may draw.
        ordered_by_hash: whether it depends on the order of a set, which is the same in each process now.
    """

    def __init__(self, homes: Homes, unpinned: dict[str, str], seeds_estimators: bool = False) -> None:
        self.homes, self.unpinned, self.seeds_estimators = homes, unpinned, seeds_estimators
        self.remembers = self.ordered_by_hash = False
        self.draws = frozenset[str]()
        self.flow = Flow()
        self._lifted: dict[str, str] = {}
        self._declared: set[int] = set()  # functions whose own task declares its files
        self._seeded: set[int] = set()  # functions in partials that give them a seed
        self.seeds: list[tuple[Scope, ast.expr, str, str]] = []
        self.clocks: list[tuple[Scope, ast.Call]] = []

    # -- what the traversal meets

    def value(self, value: Any, place: Place) -> None:
        """Judges code that is reached as a value: a default, an attribute, an item, a base class."""
        kind = type(value)
        if is_cached(value):
            self._cached(value, place)
        if kind is types.FunctionType and "." not in value.__qualname__.rpartition("<locals>.")[2]:
            self.flow.note_passed(innermost(value))
        if not (kind is types.ModuleType or issubclass(kind, type) or is_function(value)) or _is_exception(value):
            return
        if not (name := full_name_of(value, self.homes)):
            return
        why = why_outside(name)
        if why is None and (name in WANTING or name in CLOCKS):
            why = WANTING[name][1] if name in WANTING else DATE
        if why is None and is_function(value) and id(value) not in self._seeded and _wants_seed(value):
            why = UNSEEDED
        self._say(place.shown, name, why)
        self.meet(name)

    def _cached(self, function: Any, place: Place) -> None:
        """Judges a cached function: what it read when its cache was filled must have been observed."""
        self.remembers = True
        if not function.cache_info().currsize:
            _met_empty.add(function)
        elif function not in _met_empty:
            self._say(place.shown, name_of(function), FILLED)

    def partial(self, function: Any, keywords: dict[str, Any]) -> None:
        """Takes note of a function that a partial gives a seed."""
        if any(keywords.get(name) is not None for name in SEEDS):
            self._seeded.add(id(function))

    def instance(self, value: Any, place: Place) -> None:
        """Judges an object whose state is read."""
        kind = type(value)
        self.value(kind, place)
        name = full_name_of(kind, self.homes)
        if name == "jinja2.loaders.FileSystemLoader" and len(value.searchpath) > 1:
            self._say(place.shown, "a loader that looks into several folders", ASKS)
        if name == "operator.methodcaller":
            self._methodcaller(value, place)

    def declared(self, task: Any) -> None:
        """Takes note of a task that declares its files: what its own function reads is known."""
        self._declared.add(id(innermost(task)))

    def definition(self, function: types.FunctionType, node: Definition, names: CodeNames, place: Place) -> set[Import]:
        """Judges a function by its definition; gives the modules that it imports by a constant name."""
        scope = Scope(function, node, names, place, self._owner(function, names))
        self.flow.note(scope)
        found = _Definition(self, scope)
        found.judge()
        return found.imports

    def class_body(self, node: ast.AST, names: CodeNames, place: Place) -> None:
        """Judges what a class makes its instances' attributes with; else its body has run, and its values are read."""
        for statement in ast.walk(node):
            if isinstance(statement, ast.AnnAssign):
                self._annotation(statement, names, place)
            if not isinstance(statement, ast.Assign | ast.AnnAssign) or not isinstance(statement.value, ast.Call):
                continue
            target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
            for keyword in statement.value.keywords:
                if keyword.arg in _FACTORIES:
                    self._factory(keyword.value, getattr(target, "id", ""), names, place)

    def _annotation(self, node: ast.AnnAssign, names: CodeNames, place: Place) -> None:
        """Judges the type of an attribute: a model makes sets of it, or asks whether files exist."""
        if SET_TYPES & set(re.findall(r"\w+", ast.unparse(node.annotation))):
            self.flow.note_value(getattr(node.target, "id", ""), set())
        for part in ast.walk(node.annotation):
            if why_outside(full := names.named(part)) == ASKS and full:
                self._say(place.shown, full, ASKS, node.lineno)

    def _factory(self, node: ast.expr, name: str, names: CodeNames, place: Place) -> None:
        """Judges what makes the default of an attribute."""
        for inner, _ in references([node.body if isinstance(node, ast.Lambda) else node]):
            full = names.named(inner)
            why = DATE if full in CLOCKS else why_outside(full) if full else None
            self._say(place.shown, ".".join(chain_of(inner)), why, inner.lineno)
            if full in SET_MAKERS:
                self.flow.note_value(name, set())

    def bytecode(self, function: types.FunctionType, uses: Uses, place: Place) -> None:
        """Judges a function without source: by names alone, as the arguments cannot be seen."""
        code, shown = function.__code__, place.shown
        self.remembers = True
        names = CodeNames(ast.Module([], []), function.__globals__, self.homes, closure_of(function))
        used = {name for inner in nested(code) for name in inner.co_names}
        for chain in sorted(uses.chains):
            value, full = names.resolve(chain)
            if full and not _is_exception(value):
                wants = UNSEEDED if full in WANTING or _wants_seed(value) else None
                self._say(shown, ".".join(chain), why_outside(full) or wants)
        for level, module, _ in sorted(uses.imports):
            for full in () if level else (module, *(f"{module}.{name}" for name in sorted(used))):
                self._say(shown, full, why_outside(full))
        for method in sorted(used & METHODS.keys()):
            self._say(shown, method, METHODS[method])
        if used & {"set", "frozenset"} and hash_seed() is None:
            self.unpinned.setdefault(f"{shown} {SET_ORDER}", f"{shown}: the order of a set {SET_ORDER}; {SET_ADVICE}")

    def settle(self, declared: bool) -> None:
        """Judges what can be known only when all that is reached has been met.

        Args:
            declared: the user has said which files are read.
        """
        self.unpinned |= {} if declared else self._lifted
        for scope, seed, what, why in self.seeds:
            if may_be_none(seed, scope, self.flow):
                self.say(scope, f"{what}, whose {shown_node(seed)} may be None,", why, seed.lineno)
        for scope, call in self.clocks:
            if not measures(call, scope, self.flow):
                self.say(scope, shown_node(call.func), DATE, call.lineno)
        self.remembers = self.remembers or any(remembers(scope, self.flow) for scope in self.flow.scopes.values())
        for scope, node in Sets(self.flow).unordered_uses():
            self.ordered_by_hash = True
            if hash_seed() is None:
                where = f"{scope.place.shown}, line {node.lineno}"
                sentence = f"{where}: the order of {shown_node(node)} {SET_ORDER}; {SET_ADVICE}"
                self.unpinned.setdefault(f"{scope.place.shown} {SET_ORDER}", sentence)

    # -- for definitions

    def say(self, scope: Scope, what: str, why: str | None, line: int) -> None:
        """Adds a finding in a definition."""
        lifted = why in LIFTED_BY_FILES and id(scope.function) in self._declared
        self._say(scope.place.shown, what, None if lifted else why, line)

    def meet(self, full: str) -> None:
        """Takes note of code of others, by its full name."""
        self.remembers |= is_caching(full)
        self.draws |= shared_generators_of(full)

    def is_ours(self, value: Any) -> bool:
        """Whether a class or function is first-party."""
        return self.homes.of(value).ours

    def _say(self, shown: str, what: str, why: str | None, line: int = 0) -> None:
        if why:
            where = f"{shown}, line {line}" if line else shown
            found = self._lifted if why in LIFTED_BY_FILES else self.unpinned
            found.setdefault(f"{shown} {why}", f"{where}: {what} {why}; {advice(why)}")

    def _methodcaller(self, value: Any, place: Place) -> None:
        make, arguments = value.__reduce__()[:2]
        keywords = getattr(make, "keywords", {})
        values: list[Any] = [*getattr(make, "args", ()), *arguments]
        name, rest = values[0], values[1:]
        if METHODS.get(name) and not any(keywords.get(seed) is not None for seed in SEEDS) and len(rest) < 2:
            self._say(place.shown, f"methodcaller({name!r})", METHODS[name])

    def _owner(self, function: types.FunctionType, names: CodeNames) -> Any:
        """The class that a method was written in."""
        found: Any = names.namespace.get(function.__qualname__.partition(".")[0], MISSING)
        for name in function.__qualname__.split(".")[1:-1]:
            found = static_attribute(found, name)
        return found if "." in function.__qualname__ and is_a(found, type) else MISSING


class _Definition:
    """One definition under judgement."""

    def __init__(self, judge: Judge, scope: Scope) -> None:
        self.owner, self.scope, self.names = judge, scope, scope.names
        self.imports: set[Import] = set()
        self._ignored, self._passed_on = set[int](), set[int]()
        self._called_names: set[str] = set()

    def judge(self) -> None:
        node = self.scope.node
        for part in ast.walk(node):
            self._look_around(part)
        for part, call in references([node.body] if isinstance(node, ast.Lambda) else node.body):
            if id(part) in self._ignored or not isinstance(getattr(part, "ctx", None), ast.Load | None):
                continue
            chain = chain_of(part)
            if chain:
                self._name(part, chain, call)
            elif isinstance(part, ast.Attribute):
                self._attribute(part, call)

    def _look_around(self, node: ast.AST) -> None:
        """Finds the expressions that do nothing, are only shown, or are used by somebody else."""
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            self._ignored.update(map(id, ast.walk(node.type)))
        elif isinstance(node, ast.MatchClass):
            self._ignored.add(id(node.cls))
        elif isinstance(node, ast.Compare):
            self._ignored.update(id(side) for side in (node.left, *node.comparators) if self._is_class(side))
            if all(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops):
                compared = [part for part in ast.walk(node) if self._is_id(part)]
                both = len(compared) > len(node.ops)
                self._ignored.update(id(part) for part in compared if both or self.names.named(part) == "builtins.id")
        elif isinstance(node, ast.Assign | ast.NamedExpr):
            self._passed_on.add(id(node.value))
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if self.names.named(node.value) in ("os.environ", "os.environb"):
                self._ignored.add(id(node.value))
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Call) and self._is_id(node.slice.func):
            self._ignored.add(id(node.slice.func))
        elif isinstance(node, ast.Call):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            self._passed_on.update(map(id, arguments))
            self._called_names.add(".".join(chain_of(node.func)))
            if self.names.named(node.func) in _CHECKING and len(node.args) > 1:
                self._ignored.update(map(id, ast.walk(node.args[1])))
        if self.scope.function.__name__ == "__hash__" and self._is_id(node):
            self._ignored.add(id(node))

    def _is_class(self, node: ast.expr) -> bool:
        chain = chain_of(node)
        return bool(chain) and is_a(self.names.resolve(chain)[0], type)

    def _is_id(self, node: ast.AST) -> bool:
        """Whether an expression is `id` or `hash`; to compare objects by them says nothing of the process."""
        return isinstance(node, ast.Name) and node.id in ("hash", "id") and self.names.named(node) in _IDENTITY

    # -- names

    def _name(self, node: ast.expr, chain: Chain, call: ast.Call | None) -> None:
        value, full = self.names.resolve(chain)
        if _is_exception(value):
            return
        if not full:
            if call is not None or id(node) in self._passed_on:
                self._unnamed(node, chain, value, call)
            return
        self.owner.meet(full)
        why = self._why(full, value, call)
        table = full.partition(".__dict__")[0] if "__dict__" in chain else ""
        if (call is None and type(value) is types.ModuleType and hands_on(full)) or (table and hands_on(table)):
            why = why or ANYTHING
        if call is None and full in _PASSED_ON_UNKNOWN:
            why = _PASSED_ON_UNKNOWN[full]
        if full in CLOCKS and call is not None:
            self.owner.clocks.append((self.scope, call))
        if not (why in SHOWN_IS_HARMLESS and is_shown(node, self.scope)):
            self._say(".".join(chain), why, node.lineno)
        if call is not None:
            self._special(full, call)

    def _unnamed(self, node: ast.expr, chain: Chain, value: Any, call: ast.Call | None) -> None:
        """Judges what has no full name: the method of an object, or first-party code."""
        if isinstance(node, ast.Attribute) and not (value is not MISSING and self._is_code(value)):
            self._attribute(node, call)

    def _is_code(self, value: Any) -> bool:
        inner = innermost(value)
        return is_a(inner, types.FunctionType, types.MethodType, type) and self.owner.is_ours(inner)

    def _attribute(self, node: ast.Attribute, call: ast.Call | None) -> None:
        """Judges the method of an object."""
        own = isinstance(node.value, ast.Name) and node.value.id == self._first()
        if own and static_attribute(self.scope.owner, node.attr) is not MISSING:
            return  # of the same class, which is judged by itself
        maker, full = self._made_by(node.value)
        if is_a(maker, type) and (method := static_attribute(maker, node.attr)) is not MISSING:
            if full:
                self._say(shown_node(node), self._why(f"{full}.{node.attr}", method, call), node.lineno)
            return
        if call is None and id(node) not in self._passed_on:
            return
        self._method(node.attr, call, shown_node(node), node.lineno)

    def _method(self, name: str, call: ast.Call | None, shown: str, line: int) -> None:
        """Judges a method of which nothing but the name is known."""
        why = METHODS.get(name)
        if why == UNSEEDED and call is not None and (seed_in(call) or _is_of_generator(name, call)):
            self._check_seed(seed_in(call), shown, why)
            why = None
        if why is not None and why in LIFTED_BY_FILES and (call is None or call.args or _is_of_own_file(call)):
            why = None
        self._say(shown, why or (self._why_arguments(name, call) if call is not None else None), line)

    def _why_arguments(self, name: str, call: ast.Call) -> str | None:
        """Why a call leaves code unpinned, whatever is called."""
        if name == "astimezone" and not (call.args or call.keywords):
            return ENVIRONMENT
        if name in ("get_or_select_template", "select_template"):
            return ASKS
        if name == "FileSystemLoader" and call.args and isinstance(call.args[0], ast.List | ast.Tuple):
            return ASKS
        if name in GLOBS and call.args and not _lists_folders(call.args[0]):
            return ASKS
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        jobs = keywords.get("n_jobs")
        if jobs is not None and not (isinstance(jobs, ast.Constant) and jobs.value in (None, 1)):
            return PROCESSES
        return NATIVE if "dir_fd" in keywords else None

    def _made_by(self, node: ast.expr) -> tuple[Any, str]:
        """What an object was made by, where the definition shows it: value and full name of a class or function."""
        if isinstance(node, ast.Name) and self.names.is_local(node.id):
            values = self.names.settings[node.id]
            node = values[0] if len(values) == 1 and values[0] is not None else node
        if isinstance(node, ast.Await):
            node = node.value
        chain = chain_of(node.func) if isinstance(node, ast.Call) else ()
        return self.names.resolve(chain) if chain else (MISSING, "")

    # -- why

    def _why(self, full: str, value: Any, call: ast.Call | None) -> str | None:
        """Why what has a full name gives something else each time, used like this."""
        if full in WANTING:
            position, missing = WANTING[full]
            named = [] if call is None else [keyword.value for keyword in call.keywords if keyword.arg]
            arguments = [] if call is None else [*call.args[position:], *named]
            arguments = [each for each in arguments if not _is_constant(each, None)]
            if missing == CHANCE and arguments:
                self._check_seed(arguments[0], full, missing)
            return None if arguments else missing
        why = why_outside(full)
        if why in LIFTED_BY_FILES and call is not None and _is_of_own_file(call):
            return None
        if why is not None or full.startswith(("evaluand.", *_OWN_GENERATORS)):
            return why
        last = full.rpartition(".")[2]
        if call is not None and (last in NOW or self._says_now(full, call)):
            return DATE
        if full == "numpy.ndarray":
            return None if call is None else UNSET
        if full == "gzip.compress" and not (call is not None and _has(call, "mtime")):
            return DATE
        if type(value).__name__ == "ufunc" and call is not None and _has(call, "where") and not _has(call, "out"):
            return UNSET
        by_name = METHODS.get(last) if "." in full.partition(".")[2] else None
        if by_name == DATE:
            return DATE
        if by_name in (UNSEEDED, CHANCE) or self._takes_seed(value, call):
            seed = None if call is None else seed_in(call) or self._positional_seed(value, call)
            if seed is None:
                return by_name or UNSEEDED
            self._check_seed(seed, full, by_name or UNSEEDED)
        return self._why_arguments(last, call) if call is not None else None

    def _takes_seed(self, value: Any, call: ast.Call | None) -> bool:
        """Whether something draws at random, used like this, unless it gets a seed."""
        if is_a(value, type) and (call is None or self.owner.seeds_estimators):
            return False
        return bool(_places_of_seeds(value)) and (call is None or _shuffles(value, call))

    def _positional_seed(self, value: Any, call: ast.Call) -> ast.expr | None:
        return next((call.args[place] for place in _places_of_seeds(value) if place < len(call.args)), None)

    def _check_seed(self, seed: ast.expr | None, what: str, why: str) -> None:
        if seed is not None:
            self.owner.seeds.append((self.scope, seed, what, why))

    def _says_now(self, full: str, call: ast.Call) -> bool:
        """Whether a call of NumPy or pandas names the present time in a text."""
        parts = (part for argument in (*call.args, *call.keywords) for part in ast.walk(argument))
        dates = full.partition(".")[0] in ("numpy", "pandas")
        return dates and any(self._is_now(part) for part in parts if isinstance(part, ast.Constant | ast.Name))

    def _is_now(self, node: ast.expr) -> bool:
        chain = chain_of(node)
        text = self.names.resolve(chain)[0] if chain else _text(node)
        return type(text) is str and text.lower() in NOW

    # -- calls that hide names

    def _special(self, full: str, call: ast.Call) -> None:
        if full in _IMPORTING:
            self._import(call)
        elif full == "builtins.getattr" and len(call.args) > 1:
            self._getattr(call)
        elif full in ("functools.partial", "functools.partialmethod") and call.args:
            self._partial(call)
        elif full in ("operator.methodcaller", "operator.attrgetter") and call.args:
            for argument in call.args[:1] if full.endswith("methodcaller") else call.args:
                name = _text(argument)
                if name is None:
                    self._say(shown_node(call.func), COMPUTED_NAME, call.lineno)
                elif full.endswith("methodcaller"):
                    of_method = ast.Call(call.func, call.args[1:], call.keywords)
                    self._method(name, of_method, f"{shown_node(call.func)}({name!r})", call.lineno)
                elif METHODS.get(name.rpartition(".")[2]) not in LIFTED_BY_FILES:
                    self._method(name.rpartition(".")[2], None, f"{shown_node(call.func)}({name!r})", call.lineno)

    def _partial(self, call: ast.Call) -> None:
        """Judges a function that is called later with what a partial gives it."""
        chain = chain_of(call.args[0])
        value, full = self.names.resolve(chain) if chain else (MISSING, "")
        later = ast.Call(call.args[0], call.args[1:], call.keywords)
        self._ignored.add(id(call.args[0]))
        if full:
            self._say(".".join(chain), self._why(full, value, later), call.lineno)
        elif isinstance(call.args[0], ast.Attribute):
            self._attribute(call.args[0], later)

    def _import(self, call: ast.Call) -> None:
        name = _text(call.args[0]) if call.args else None
        if name is None and call.args and (chain := chain_of(call.args[0])):
            value = self.names.resolve(chain)[0]
            name = value if type(value) is str else None
        if name is None:
            self._say(shown_node(call.func), COMPUTED_MODULE, call.lineno)
            return
        bare = name.lstrip(".")
        self.imports.add((len(name) - len(bare), bare, ()))
        module = imported(bare, len(name) - len(bare), self.names.namespace)
        full = bare if module is None else self.names.full_name(module)
        if full:
            self._say(
                f"{shown_node(call.func)}({name!r})",
                why_outside(full) or (ANYTHING if hands_on(full) else None),
                call.lineno,
            )

    def _getattr(self, call: ast.Call) -> None:
        chain, name = chain_of(call.args[0]), _text(call.args[1])
        value, full = self.names.resolve(chain) if chain else (MISSING, "")
        self._ignored.add(id(call.args[0]))
        shown = f"getattr({shown_node(call.args[0])}, ...)"
        if name is None:
            if type(value) is types.ModuleType:
                foreign = why_outside(full) or (ANYTHING if hands_on(full) else None)
                self._say(shown, foreign if full else COMPUTED_NAME, call.lineno)
            elif not (chain and chain[0] == self._first() and self.scope.owner is not MISSING) and self._is_used(call):
                self._say(shown, COMPUTED_NAME, call.lineno)
        elif full or value is not MISSING:
            inner, inner_name = self.names.resolve((*chain, name))
            self._say(shown, self._why(inner_name, inner, None) if inner_name else None, call.lineno)
        elif METHODS.get(name) not in LIFTED_BY_FILES:
            self._method(name, None, shown, call.lineno)

    def _first(self) -> str:
        arguments = [*self.scope.node.args.posonlyargs, *self.scope.node.args.args]
        return arguments[0].arg if arguments else ""

    def _is_used(self, node: ast.Call) -> bool:
        """Whether what an expression gives is called: at once, by somebody else, or under the name it is set to."""
        for part in ast.walk(self.scope.node):
            if isinstance(part, ast.Call) and (part.func is node or node in part.args):
                return True
        names = (name for name, values in self.names.settings.items() if any(value is node for value in values))
        return any(name in self._called_names for name in names)

    def _say(self, what: str, why: str | None, line: int) -> None:
        self.owner.say(self.scope, what, why, line)


def references(nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, ast.Call | None]]:
    """The expressions that name something or are called, with the call; annotations are left out, as none runs them."""
    waiting = list(reversed(nodes))
    while waiting:
        part = waiting.pop()
        inner: list[ast.AST]
        chain = chain_of(part.func if isinstance(part, ast.Call) else part)
        if isinstance(part, ast.Call):
            yield part.func, part
            inner = [*part.args, *part.keywords]
            if not chain:
                inner[:0] = ast.iter_child_nodes(part.func) if isinstance(part.func, ast.Attribute) else [part.func]
        elif isinstance(part, ast.Name | ast.Attribute):
            yield part, None
            inner = [] if chain else list(ast.iter_child_nodes(part))
        elif isinstance(part, ast.AnnAssign):
            inner = [part.target, *([part.value] if part.value else [])]
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            defaults = [*part.args.defaults, *(value for value in part.args.kw_defaults if value)]
            inner = [*part.decorator_list, *defaults, *part.body]
        else:
            inner = list(ast.iter_child_nodes(part))
        waiting.extend(reversed(inner))


# -- values and calls


def _is_exception(value: Any) -> bool:
    """Whether something is a class of errors, which does nothing but say what went wrong."""
    return is_readable(value) and issubclass(value, BaseException) if issubclass(type(value), type) else False


def _wants_seed(value: Any) -> bool:
    """Whether a function takes a seed and has none by default."""
    return bool(_places_of_seeds(value))


def _places_of_seeds(value: Any) -> list[int]:
    """The positions of a function's or class's parameters that are seeds and None by default."""
    if value is MISSING or not (callable(value) or is_a(value, classmethod, staticmethod)):
        return []
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except Exception:  # whatever compiled code and metaclasses raise
        return []
    return [place for place, each in enumerate(parameters) if each.name in SEEDS and each.default is None]


def _shuffles(value: Any, call: ast.Call) -> bool:
    """Whether a call draws at all, as far as a parameter `shuffle` says so."""
    default = inspect.signature(value).parameters.get("shuffle")
    if default is None or default.default is not False:
        return True
    return any(keyword.arg in ("shuffle", None) and not _is_constant(keyword.value, False) for keyword in call.keywords)


def _lists_folders(pattern: ast.expr) -> bool:
    """Whether a pattern ends with a wildcard, so that matching lists the folders, which is observed."""
    last = (_text(pattern) or "").replace("\\", "/").rpartition("/")[2]
    return any(mark in last for mark in "*?[") and last != "**"


def _has(call: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in call.keywords)


def _is_of_own_file(call: ast.Call) -> bool:
    """Whether a call is about the file of the code itself."""
    return any(isinstance(part, ast.Name) and part.id == "__file__" for part in ast.walk(call))


def _is_of_generator(name: str, call: ast.Call) -> bool:
    """Whether a call looks like that of a generator's method, which is as good as the seed the generator has."""
    keywords = {keyword.arg for keyword in call.keywords}
    if name == "sample":
        return len(call.args) > 1 or bool(keywords & {"counts", "k"})
    return name == "shuffle" and bool(call.args)


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def shown_node(node: ast.AST) -> str:
    """An expression in a sentence."""
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."
