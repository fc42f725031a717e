"""Whether code gives the same answer each time, judged name by name: each finding leaves it unpinned.

Only what first-party code uses by name counts, not what a library does with it. Nothing is guessed about the values of
variables beyond what one assignment in the same definition shows: what may be random, such as `sample` of an object
whose type is not known, is taken to be.
"""

from __future__ import annotations

import ast
import inspect
import logging
import types
from collections.abc import Iterator, Sequence
from typing import Any

from evaluand.core.fingerprint.bytecode import Uses, nested
from evaluand.core.fingerprint.homes import MISSING, Homes, imported
from evaluand.core.fingerprint.memory import remembers
from evaluand.core.fingerprint.names import CodeNames, closure_of, full_name_of, static_attribute
from evaluand.core.fingerprint.outside import (
    ANYTHING,
    CHANCE,
    CLOCKS,
    DATE,
    DATES_OF_TEXT,
    ENVIRONMENT,
    LIFTED_BY_FILES,
    METHODS,
    NOW,
    SEEDS,
    SHOWN_IS_HARMLESS,
    STATE,
    UNSEEDED,
    WANTING,
    advice,
    hands_on,
    is_caching,
    why_outside,
)
from evaluand.core.fingerprint.parts import PIN, Place
from evaluand.core.fingerprint.sets import Scope, Sets, hash_seed
from evaluand.core.fingerprint.syntax import Chain, Definition, Import, chain_of
from evaluand.core.fingerprint.wrapping import innermost, is_a, is_cached, is_function, is_readable

_IMPORTING = frozenset(("importlib.import_module", "builtins.__import__"))
_CHECKING = frozenset(("builtins.isinstance", "builtins.issubclass"))
_FACTORIES = frozenset(("default_factory", "factory"))
_FITTING = frozenset(("fit", "fit_predict", "fit_resample", "fit_transform", "partial_fit"))
_DRAWING = {
    "DummyClassifier": ("stratified", "uniform"),
    "IterativeImputer": (True,),
}  # estimators that draw to predict
_DRAWING_PARAMETERS = ("strategy", "sample_posterior")
_OWN_GENERATORS = ("random.", "numpy.random.")  # whose methods are as good as the seed they were made with
_LOGGING = frozenset(("critical", "debug", "error", "exception", "info", "log", "warn", "warning"))
_LOGGERS = frozenset(("log", "logger", "task_span"))  # however many underscores, in whatever case
_TRACING = frozenset(("log", "set"))
_IDENTITY = frozenset(("builtins.hash", "builtins.id"))
COMPUTED_MODULE = "imports a module whose name is known only when it runs"
COMPUTED_NAME = "uses an attribute whose name is known only when it runs"
SET_ORDER = "differs between processes, which hash texts at random"
SET_ADVICE = f"use sorted(...), or set PYTHONHASHSEED, or {PIN}"


class Judge:
    """Judges what one traversal reaches.

    Args:
        homes: where code comes from.
        unpinned: where findings go: key → sentence.
        seeds_estimators: whoever calls the code sets each `random_state` that is None.

    Attributes:
        remembers: whether the code may keep something between calls.
        ordered_by_hash: whether it depends on the order of a set, which is the same in each process now.
    """

    def __init__(self, homes: Homes, unpinned: dict[str, str], seeds_estimators: bool = False) -> None:
        self.homes, self.unpinned, self._seeds = homes, unpinned, seeds_estimators
        self.remembers = self.ordered_by_hash = False
        self.sets = Sets()
        self._lifted: dict[str, str] = {}
        self._declared: set[int] = set()  # functions whose own task declares its files
        self._seeded: set[int] = set()  # functions in partials that give them a seed
        self._unseeded: list[str] = []
        self._fits: list[tuple[Place, int]] = []

    # -- what the traversal meets

    def value(self, value: Any, place: Place) -> None:
        """Judges code that is reached as a value: a default, an attribute, an item, a base class."""
        kind = type(value)
        if is_cached(value):
            self.remembers = True
        if not (kind is types.ModuleType or issubclass(kind, type) or is_function(value)) or _is_exception(value):
            return
        if not (name := full_name_of(value, self.homes)):
            return
        why = why_outside(name)
        if why is None and name in WANTING:
            why = WANTING[name][1]
        if why is None and is_function(value) and id(value) not in self._seeded and _wants_seed(value, None):
            why = UNSEEDED
        self._say(place.shown, name, why)
        self.remembers |= is_caching(name)

    def partial(self, function: Any, keywords: dict[str, Any]) -> None:
        """Takes note of a function that a partial gives a seed."""
        if any(keywords.get(name) is not None for name in SEEDS):
            self._seeded.add(id(function))

    def instance(self, value: Any, place: Place) -> None:
        """Judges an object whose state is read."""
        kind = type(value)
        self.value(kind, place)
        name = full_name_of(kind, self.homes)
        if name == "operator.methodcaller":
            self._methodcaller(value, place)
        if not name or self._seeds or getattr(value, "random_state", 0) is not None:
            return
        if hasattr(kind, "fit"):
            self._unseeded.append(f"{place.shown}: {kind.__name__}")
        drawing = _DRAWING.get(kind.__name__, ())
        if any(getattr(value, parameter, None) in drawing for parameter in _DRAWING_PARAMETERS):
            self._say(place.shown, name, UNSEEDED)

    def declared(self, task: Any) -> None:
        """Takes note of a task that declares its files: what its own function reads is known."""
        self._declared.add(id(innermost(task)))

    def definition(self, function: types.FunctionType, node: Definition, names: CodeNames, place: Place) -> set[Import]:
        """Judges a function by its definition; gives the modules that it imports by a constant name."""
        scope = Scope(function, node, names, place, self._owner(function, names))
        self.sets.note(scope)
        self.remembers |= remembers(node, names)
        found = _Definition(self, scope)
        found.judge()
        return found.imports

    def class_body(self, node: ast.AST, names: CodeNames, place: Place) -> None:
        """Judges what a class makes its instances' attributes with; else its body has run, and its values are read."""
        for part in ast.walk(node):
            if isinstance(part, ast.keyword) and part.arg in _FACTORIES:
                for inner, call in references([part.value.body if isinstance(part.value, ast.Lambda) else part.value]):
                    full = names.named(inner)
                    self._say(place.shown, ".".join(chain_of(inner)), why_outside(full) if full else None, inner.lineno)
                    del call

    def bytecode(self, function: types.FunctionType, uses: Uses, place: Place) -> None:
        """Judges a function without source: by names alone, as the arguments cannot be seen."""
        code, shown = function.__code__, place.shown
        self.remembers = True
        names = CodeNames(ast.Module([], []), function.__globals__, self.homes, closure_of(function))
        used = {name for inner in nested(code) for name in inner.co_names}
        for chain in sorted(uses.chains):
            value, full = names.resolve(chain)
            if full and not _is_exception(value):
                wants = UNSEEDED if full in WANTING or _wants_seed(value, None) else None
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
        for where in self._unseeded:
            for place, line in self._fits[:1]:
                sentence = f"{where} {UNSEEDED}, and {place.shown}, line {line} fits it; {advice(UNSEEDED)}"
                self.unpinned.setdefault(where, sentence)
        for scope, node in self.sets.unordered_uses():
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

    def fits(self, scope: Scope, line: int) -> None:
        """Takes note that something is fitted."""
        self._fits.append((scope.place, line))

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
        self._ignored, self._printed, self._passed_on = set[int](), set[int](), set[int]()
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
            if any(isinstance(side, ast.Call) and self._is_id(side.func) for side in (node.left, *node.comparators)):
                self._ignored.update(id(part) for part in ast.walk(node) if self._is_id(part))
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
            if self._shows(node):
                self._printed.update(id(part) for argument in arguments for part in ast.walk(argument))
        if self.scope.function.__name__ in ("__hash__", "__repr__") and self._is_id(node):
            self._ignored.add(id(node))

    def _is_class(self, node: ast.expr) -> bool:
        chain = chain_of(node)
        return bool(chain) and is_a(self.names.resolve(chain)[0], type)

    def _is_id(self, node: ast.AST) -> bool:
        """Whether an expression is `id` or `hash`; to compare objects by them says nothing of the process."""
        return isinstance(node, ast.Name) and node.id in ("hash", "id") and self.names.named(node) in _IDENTITY

    def _shows(self, call: ast.Call) -> bool:
        """Whether a call only prints, logs or traces its arguments."""
        full = self.names.named(call.func)
        if full == "builtins.print":
            return all(keyword.arg != "file" or "std" in ast.unparse(keyword.value) for keyword in call.keywords)
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOGGING | _TRACING:
            return False
        if full.startswith("logging."):
            return True
        if isinstance(call.func.value, ast.Call):
            return self.names.named(call.func.value.func) == "logging.getLogger"
        chain = chain_of(call.func.value)
        value = self.names.resolve(chain)[0] if chain else MISSING
        named = bool(chain) and chain[-1].strip("_").lower() in _LOGGERS
        return named or is_a(value, logging.Logger, logging.LoggerAdapter)

    # -- names

    def _name(self, node: ast.expr, chain: Chain, call: ast.Call | None) -> None:
        value, full = self.names.resolve(chain)
        if _is_exception(value):
            return
        if not full:
            if call is not None or id(node) in self._passed_on:
                self._unnamed(node, chain, value, call)
            return
        self.owner.remembers |= is_caching(full)
        why = self._why(full, value, call)
        table = full.partition(".__dict__")[0] if "__dict__" in chain else ""
        if (call is None and type(value) is types.ModuleType and hands_on(full)) or (table and hands_on(table)):
            why = why or ANYTHING
        if call is None and full in _IMPORTING:
            why = COMPUTED_MODULE
        if not (why in SHOWN_IS_HARMLESS and id(node) in self._printed):
            self._say(".".join(chain), why, node.lineno)
        if call is not None:
            self._special(full, call)
            if chain[-1] in _FITTING:
                self.owner.fits(self.scope, node.lineno)

    def _unnamed(self, node: ast.expr, chain: Chain, value: Any, call: ast.Call | None) -> None:
        """Judges what has no full name: the method of an object, or first-party code."""
        if isinstance(node, ast.Attribute) and not (value is not MISSING and self._is_code(value)):
            self._attribute(node, call)

    def _is_code(self, value: Any) -> bool:
        inner = innermost(value)
        return is_a(inner, types.FunctionType, types.MethodType, type) and self.owner.is_ours(inner)

    def _attribute(self, node: ast.Attribute, call: ast.Call | None) -> None:
        """Judges the method of an object."""
        if isinstance(node.value, ast.Name) and static_attribute(self.scope.owner, node.attr) is not MISSING:
            return  # of the same class, which is judged by itself
        maker, full = self._made_by(node.value)
        if is_a(maker, type) and (method := static_attribute(maker, node.attr)) is not MISSING:
            if full:
                self._say(shown_node(node), self._why(f"{full}.{node.attr}", method, call), node.lineno)
            return
        if call is None and id(node) not in self._passed_on:
            return
        if node.attr in _FITTING and call is not None:
            self.owner.fits(self.scope, node.lineno)
        self._method(node.attr, call, shown_node(node), node.lineno)

    def _method(self, name: str, call: ast.Call | None, shown: str, line: int) -> None:
        """Judges a method of which nothing but the name is known."""
        why = METHODS.get(name)
        if why == UNSEEDED and call is not None and (_gives_seed(call) or _is_of_generator(name, call)):
            why = None
        if why is not None and why in LIFTED_BY_FILES and (call is None or call.args):
            why = None
        self._say(shown, why, line)

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
            return None if call is not None and self._is_given(call, position) else missing
        why = why_outside(full)
        if why is not None or full.startswith(("evaluand.", *_OWN_GENERATORS)):
            return why
        last = full.rpartition(".")[2]
        if last in DATES_OF_TEXT and call is not None and any(_is_now(argument) for argument in call.args):
            return DATE
        wants = METHODS.get(last) in (UNSEEDED, CHANCE) and not (call is not None and _gives_seed(call))
        if wants and "." in full.partition(".")[2]:
            return METHODS[last]
        return UNSEEDED if self._is_unseeded(value, call) else None

    def _is_unseeded(self, value: Any, call: ast.Call | None) -> bool:
        if self.owner._seeds and is_a(value, type):
            return False
        return (call is not None or not is_a(value, type)) and _wants_seed(value, call)

    def _is_given(self, call: ast.Call, position: int) -> bool:
        """Whether a call has a seed or a time that is the same each time."""
        values = [*call.args[position:], *(keyword.value for keyword in call.keywords)]
        seeds = [value for value in values if not (isinstance(value, ast.Constant) and value.value is None)]
        return bool(seeds) and not any(name in CLOCKS or _is_chance(name) for name in self._names_in(seeds, set()))

    def _names_in(self, nodes: Sequence[ast.AST], seen: set[str]) -> Iterator[str]:
        """The full names in some syntax, and in what its variables are set to."""
        for part in (part for node in nodes for part in ast.walk(node)):
            if isinstance(part, ast.Name | ast.Attribute):
                yield self.names.named(part)
            if isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                values = self.names.settings.get(part.id, ())
                yield from self._names_in([value for value in values if value is not None], seen)

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


def _wants_seed(value: Any, call: ast.Call | None) -> bool:
    """Whether a function or class takes a seed, has none by default, and the call has none."""
    if value is MISSING or not (callable(value) or is_a(value, classmethod, staticmethod)):
        return False
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except Exception:  # whatever compiled code and metaclasses raise
        return False
    places = [i for i, each in enumerate(parameters) if each.name in SEEDS and each.default is None]
    if not places or call is None:
        return bool(places)
    if any(each.name == "shuffle" and each.default is False for each in parameters) and not _shuffles(call):
        return False
    by_place = any(place < len(call.args) and not isinstance(call.args[place], ast.Starred) for place in places)
    return not (by_place or _gives_seed(call))


def _shuffles(call: ast.Call) -> bool:
    return any(keyword.arg in ("shuffle", None) and not _is_constant(keyword.value, False) for keyword in call.keywords)


def _gives_seed(call: ast.Call) -> bool:
    return any(keyword.arg in SEEDS and not _is_constant(keyword.value, None) for keyword in call.keywords)


def _is_of_generator(name: str, call: ast.Call) -> bool:
    """Whether a call looks like that of a generator's method, which is as good as the seed the generator has."""
    keywords = {keyword.arg for keyword in call.keywords}
    if name == "sample":
        return len(call.args) > 1 or bool(keywords & {"counts", "k"})
    return name == "shuffle" and bool(call.args)


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _is_now(node: ast.expr) -> bool:
    text = _text(node)
    return text is not None and text.lower() in NOW


def _is_chance(name: str) -> bool:
    return bool(name) and name not in WANTING and why_outside(name) in (CHANCE, DATE, STATE, ENVIRONMENT)


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def shown_node(node: ast.AST) -> str:
    """An expression in a sentence."""
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."
