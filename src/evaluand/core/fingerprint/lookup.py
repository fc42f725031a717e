"""Whether code gives the same answer each time: the names that it uses are looked up, and nothing is followed.

Only what first-party code uses by name counts, not what a library does with it. A call is read one node deep: a seed
must be a constant there. What may be random, such as `sample` of an object whose type is not known, is taken to be.
What no name shows is found by repeating some answers before they are reused.
"""

from __future__ import annotations

import ast
import inspect
import re
import types
import weakref
from collections.abc import Callable
from typing import Any

from evaluand.core.fingerprint.bytecode import Uses, nested
from evaluand.core.fingerprint.homes import MISSING, Homes, imported
from evaluand.core.fingerprint.names import CodeNames, closure_of, full_name_of, static_attribute
from evaluand.core.fingerprint.order import SET_MAKERS, SET_TYPES, Order, hash_seed
from evaluand.core.fingerprint.outside import (
    ANYTHING,
    ARGUMENTS,
    ASKS,
    CHANCE,
    CLOCKS,
    DATE,
    ENVIRONMENT,
    FILLED,
    FINDS_ITSELF,
    GLOBS,
    LIFTED_BY_FILES,
    METHODS,
    NATIVE,
    NOW,
    PROCESSES,
    SEEDS,
    SHOWN_IS_HARMLESS,
    STATE,
    UNSEEDED,
    UNSET,
    WANTING,
    advice,
    hands_on,
    is_caching,
    why_outside,
)
from evaluand.core.fingerprint.parts import PIN, Place
from evaluand.core.fingerprint.scope import Scope
from evaluand.core.fingerprint.syntax import Chain, Definition, Import, chain_of
from evaluand.core.fingerprint.wrapping import innermost, is_a, is_cached, is_function, is_readable, name_of

_IMPORTING = frozenset(("importlib.import_module", "builtins.__import__"))
_CHECKING = frozenset(("builtins.isinstance", "builtins.issubclass"))
_FACTORIES = frozenset(("converter", "default_factory", "factory"))
_OWN_GENERATORS = ("random.", "numpy.random.")  # whose methods are as good as the seed they were made with
_MAKING = frozenset(("__init__", "__post_init__", "__setstate__"))
_CHANGING = frozenset(  # methods that store
    str.split(
        "add append appendleft clear discard extend extendleft fit fit_transform insert partial_fit pop popitem "
        "popleft put put_nowait remove setdefault update __setattr__ __setitem__"
    )
)
_IDENTITY = frozenset(("builtins.hash", "builtins.id"))
_NEVER_NONE = frozenset(("builtins.abs", "builtins.int", "builtins.len", "zlib.adler32", "zlib.crc32"))
COMPUTED_MODULE = "imports a module whose name is known only when it runs"
COMPUTED_NAME = "uses an attribute whose name is known only when it runs"
_PASSED_ON_UNKNOWN = {  # what does anything where it is called by somebody else
    **dict.fromkeys(_IMPORTING, COMPUTED_MODULE),
    "builtins.getattr": COMPUTED_NAME,
}
SET_ORDER = "differs between processes, which hash texts at random"
SET_ADVICE = f"use sorted(...), or set PYTHONHASHSEED, or {PIN}"


_met_empty: weakref.WeakSet[Any] = weakref.WeakSet()  # cached functions: what fills them later is observed


class Lookup:
    """Looks up what one traversal reaches.

    Args:
        homes: where code comes from.
        unpinned: where findings go: key → sentence.
        seeds_estimators: whoever calls the code sets each `random_state` that is None.

    Attributes:
        order: the sets that it reaches.
        changed: the names of what the code itself changes, which outlives a call.
        caching: the libraries that keep what they read.
        libraries: the packages and modules of others that it uses.
        ordered_by_hash: whether it depends on the order of a set, which is the same in each process now.
    """

    def __init__(self, homes: Homes, unpinned: dict[str, str], seeds_estimators: bool = False) -> None:
        self.homes, self.unpinned, self.seeds_estimators = homes, unpinned, seeds_estimators
        self.ordered_by_hash = self._has_caches = False
        self.changed: set[str] = set()
        self.libraries = self.caching = frozenset[str]()
        self.order = Order()
        self.root: Any = None
        self._lifted: dict[str, str] = {}
        self._declared: set[int] = set()  # functions whose own task declares its files
        self._seeded: set[int] = set()  # functions in partials that give them a seed
        self._attributes: dict[str, list[Any]] = {}
        self._seeds: list[tuple[str, Callable[[], None]]] = []  # attributes that must not be None, and what says so

    # -- what the traversal meets

    def value(self, value: Any, place: Place) -> None:
        """Judges code that is reached as a value: a default, an attribute, an item, a base class."""
        kind = type(value)
        if is_cached(value):
            self._cached(value, place)
        if kind is types.FunctionType and "." not in value.__qualname__.rpartition("<locals>.")[2]:
            self.order.note_passed(innermost(value), place)
        if not (kind is types.ModuleType or issubclass(kind, type) or is_function(value)) or _is_exception(value):
            return
        if not (name := full_name_of(value, self.homes)):
            return
        why = why_outside(name)
        if why is None and (name in WANTING or name in CLOCKS):
            why = WANTING[name][1] if name in WANTING else DATE
        if why is None and is_function(value) and id(value) not in self._seeded and _places_of_seeds(value):
            why = UNSEEDED
        self._say(place.shown, name, why)
        self.meet(name)

    def _cached(self, function: Any, place: Place) -> None:
        """Judges a cached function: what it read when its cache was filled must have been observed."""
        self._has_caches = True
        if not function.cache_info().currsize:
            _met_empty.add(function)
        elif function not in _met_empty:
            self._say(place.shown, name_of(function), FILLED)

    def attribute(self, name: str, value: Any) -> None:
        """Takes note of what an attribute of an object or class holds."""
        self._attributes.setdefault(name, []).append(value)
        self.order.note_attribute(name, value)

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
        owner = self._owner(function, names)
        scope = Scope(function, node, names, place, owner, function is innermost(self.root))
        self.order.read(scope)
        return _Names(self, scope).read()

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
            self.order.note_set(getattr(node.target, "id", ""))
        for part in ast.walk(node.annotation):
            if why_outside(full := names.named(part)) == ASKS and full:
                self._say(place.shown, full, ASKS, node.lineno)

    def _factory(self, node: ast.expr, name: str, names: CodeNames, place: Place) -> None:
        """Judges what makes the default of an attribute."""
        for inner in ast.walk(node):
            if not (chain := chain_of(inner)):
                continue
            full = names.named(inner)
            why = DATE if full in CLOCKS else why_outside(full) if full else None
            self._say(place.shown, ".".join(chain), why, node.lineno)
            if full in SET_MAKERS:
                self.order.note_set(name)

    def bytecode(self, function: types.FunctionType, uses: Uses, place: Place) -> None:
        """Judges a function without source: by names alone, as the arguments cannot be seen."""
        code, shown = function.__code__, place.shown
        self.changed |= {chain[-2] for chain in uses.chains if len(chain) > 1 and chain[-1] in _CHANGING}
        self.changed |= uses.stored
        names = CodeNames(ast.Module([], []), function.__globals__, self.homes, closure_of(function))
        used = {name for inner in nested(code) for name in inner.co_names}
        for chain in sorted(uses.chains):
            value, full = names.resolve(chain)
            if full and not _is_exception(value):
                wants = UNSEEDED if full in WANTING or _places_of_seeds(value) else None
                self._say(shown, ".".join(chain), why_outside(full) or (DATE if full in CLOCKS else wants))
        for level, module, _ in sorted(uses.imports):
            for full in () if level else (module, *(f"{module}.{name}" for name in sorted(used))):
                self._say(shown, full, why_outside(full))
        for method in sorted(used & METHODS.keys()):
            self._say(shown, method, METHODS[method])
        if used & _CHANGING:
            self.changed |= {*code.co_freevars}
        if used & {"set", "frozenset"}:
            self._say_order(shown, shown, "a set")

    def settle(self, declared: bool) -> None:
        """Judges what can be known only when all that is reached has been met.

        Args:
            declared: the user has said which files are read.
        """
        self.unpinned |= {} if declared else self._lifted
        for attribute, say in self._seeds:
            values = self._attributes.get(attribute, [None])
            if not all(map(_is_seed, values)):
                say()
        for place, line, text in self.order.uses():
            self._say_order(place.shown, f"{place.shown}, line {line}" if line else place.shown, text)

    def _say_order(self, shown: str, where: str, what: str) -> None:
        self.ordered_by_hash = True
        if hash_seed() is None:
            what = what if len(what) <= 60 else f"{what[:57]}..."
            self.unpinned.setdefault(f"{shown} {SET_ORDER}", f"{where}: the order of {what} {SET_ORDER}; {SET_ADVICE}")

    # -- for definitions

    def say(self, scope: Scope, what: str, why: str | None, line: int) -> None:
        """Adds a finding in a definition."""
        lifted = why in LIFTED_BY_FILES and id(scope.function) in self._declared
        self._say(scope.place.shown, what, None if lifted else why, line)

    @property
    def keeps(self) -> bool:
        """Whether the code may keep something that a later call finds."""
        return self._has_caches or bool(self.changed)

    def note_cache(self) -> None:
        """Takes note of a value that is kept once it is computed."""
        self._has_caches = True

    def meet(self, full: str) -> None:
        """Takes note of code of others, by its full name."""
        if is_caching(full):
            self._has_caches = True
            self.caching |= {full.partition(".")[0]}
        self.libraries |= {full.partition(".")[0]}

    def require_seed(self, attribute: str, say: Callable[[], None]) -> None:
        """Takes note of an attribute that is a seed, which must not be None.

        Args:
            say: says that it may be None.
        """
        self._seeds.append((attribute, say))

    def _say(self, shown: str, what: str, why: str | None, line: int = 0) -> None:
        if why:
            where = f"{shown}, line {line}" if line else shown
            findings = self._lifted if why in LIFTED_BY_FILES else self.unpinned
            findings.setdefault(f"{shown} {why}", f"{where}: {what} {why}; {advice(why)}")

    def _methodcaller(self, value: Any, place: Place) -> None:
        make, arguments = value.__reduce__()[:2]
        keywords = getattr(make, "keywords", {})
        values: list[Any] = [*getattr(make, "args", ()), *arguments]
        name, rest = values[0], values[1:]
        if METHODS.get(name) and not any(keywords.get(seed) is not None for seed in SEEDS) and len(rest) < 2:
            self._say(place.shown, f"methodcaller({name!r})", METHODS[name])

    def _owner(self, function: types.FunctionType, names: CodeNames) -> Any:
        """The class that a method was written in."""
        owner: Any = names.namespace.get(function.__qualname__.partition(".")[0], MISSING)
        for name in function.__qualname__.split(".")[1:-1]:
            owner = static_attribute(owner, name)
        return owner if "." in function.__qualname__ and is_a(owner, type) else MISSING


class _Names:
    """The names in one definition."""

    def __init__(self, lookup: Lookup, scope: Scope) -> None:
        self.lookup, self.scope, self.names = lookup, scope, scope.names
        self.imports: set[Import] = set()
        self._ignored: set[int] = set()

    def read(self) -> set[Import]:
        """Judges every expression; gives the modules that are imported by a constant name."""
        for part in self.scope.nodes:
            self._ignore_inside(part)
            self.lookup.changed |= self._changed(part)
        for part in self.scope.nodes:
            if isinstance(part, ast.Call) and not isinstance(part.func, ast.Name | ast.Attribute):
                continue
            if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load):
                self._expression(part)
        return self.imports

    def _expression(self, node: ast.Name | ast.Attribute) -> None:
        around = self.scope.parent(node)
        call = around if isinstance(around, ast.Call) and around.func is node else None
        chain = chain_of(node)
        is_ignored = id(node) in self._ignored
        if chain:
            self._ignored.update(map(id, ast.walk(node)))  # which is one name
        if is_ignored:
            return
        if chain:
            self._name(node, chain, call)
        elif isinstance(node, ast.Attribute):
            self._attribute(node, call)

    def _ignore_inside(self, node: ast.AST) -> None:
        """Finds the expressions that check types or compare objects, and say nothing of the process."""
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            self._ignored.update(map(id, ast.walk(node.type)))
        elif isinstance(node, ast.MatchClass):
            self._ignored.add(id(node.cls))
        elif isinstance(node, ast.Compare):
            self._ignored.update(id(side) for side in (node.left, *node.comparators) if self._is_class(side))
            if all(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops):
                sides = [node.left, *node.comparators]
                parts = [part for side in sides for part in (side.elts if isinstance(side, ast.Tuple) else [side])]
                functions = [part.func for part in parts if isinstance(part, ast.Call) and self._is_id(part.func)]
                both = len(functions) == len(sides)
                compared = (function for function in functions if both or self.names.named(function) == "builtins.id")
                self._ignored.update(map(id, compared))
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if self.names.named(node.value) in ("os.environ", "os.environb"):
                self._ignored.add(id(node.value))
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Call) and self._is_id(node.slice.func):
            self._ignored.add(id(node.slice.func))
        elif isinstance(node, ast.Call) and self.names.named(node.func) in _CHECKING and len(node.args) > 1:
            self._ignored.update(map(id, ast.walk(node.args[1])))
        if self.scope.function.__name__ == "__hash__" and self._is_id(node):
            self._ignored.add(id(node))

    def _is_class(self, node: ast.expr) -> bool:
        chain = chain_of(node)
        return bool(chain) and is_a(self.names.resolve(chain)[0], type)

    def _is_id(self, node: ast.AST) -> bool:
        """Whether an expression is `id` or `hash`; to compare objects by them says nothing of the process."""
        return isinstance(node, ast.Name) and node.id in ("hash", "id") and self.names.named(node) in _IDENTITY

    def _changed(self, node: ast.AST) -> set[str]:
        """The names of what is stored so that it outlives the call: in what the definition has not made itself."""
        if isinstance(node, ast.Global | ast.Nonlocal):
            return {*node.names}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            node = node.func.value
        elif not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
            return set()
        while isinstance(node, ast.Subscript):
            node = node.value
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if self.scope.function.__name__ in _MAKING and self.scope.is_self(node):
            return set()
        parameters = {parameter.arg for parameter in self.scope.parameters}
        is_own = isinstance(node, ast.Name) and self.names.is_local(node.id) and node.id not in parameters
        return set() if is_own else {name}

    # -- names

    def _name(self, node: ast.Name | ast.Attribute, chain: Chain, call: ast.Call | None) -> None:
        value, full = self.names.resolve(chain)
        if _is_exception(value):
            return
        if not full:
            self._own_name(node, value, call)
            return
        self.lookup.meet(full)
        why = self._why(full, value, call)
        table = full.partition(".__dict__")[0] if "__dict__" in chain else ""
        if (call is None and type(value) is types.ModuleType and hands_on(full)) or (table and hands_on(table)):
            why = why or ANYTHING
        if call is None and full in _PASSED_ON_UNKNOWN:
            why = _PASSED_ON_UNKNOWN[full]
        if not (why in SHOWN_IS_HARMLESS and self.scope.is_shown(node)):
            self._say(".".join(chain), why, node.lineno)
        if call is not None:
            self._special(full, call)

    def _own_name(self, node: ast.Name | ast.Attribute, value: Any, call: ast.Call | None) -> None:
        """Judges what has no full name: the method of an object, or first-party code."""
        function = innermost(value)
        if is_a(function, types.FunctionType, types.MethodType, type) and self.names.is_ours(function):
            if call is not None and _parameters_of_seeds(function):
                self._seeds_of(call, function, shown_node(call.func))
        elif isinstance(node, ast.Attribute):
            self._attribute(node, call)

    def _attribute(self, node: ast.Attribute, call: ast.Call | None) -> None:
        """Judges the method of an object."""
        if self.scope.is_self(node.value) and static_attribute(self.scope.owner, node.attr) is not MISSING:
            return  # of the same class, which is judged by itself
        around = self.scope.parent(node)
        if call is not None or isinstance(around, ast.Call | ast.keyword | ast.Assign | ast.NamedExpr):
            self._method(node.attr, call, shown_node(node), node)

    def _method(self, name: str, call: ast.Call | None, shown: str, node: ast.expr) -> None:
        """Judges a method of which nothing but the name is known."""
        why = METHODS.get(name)
        if why == UNSEEDED and call is not None and (seed_in(call) or _is_of_generator(name, call)):
            self._check_seed(seed_in(call), shown, why)
            why = None
        if why in (*LIFTED_BY_FILES, ARGUMENTS) and (call is None or (call.args and name != "samefile")):
            why = None
        if call is not None and _finds_itself(name, call):
            why = None
        why = why or (self._why_arguments(name, call) if call is not None else None)
        if not (why in SHOWN_IS_HARMLESS and self.scope.is_shown(node)):
            self._say(shown, why, node.lineno)

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

    # -- why

    def _why(self, full: str, value: Any, call: ast.Call | None) -> str | None:
        """Why what has a full name gives something else each time, used like this."""
        if full in CLOCKS:
            return DATE
        if full in WANTING:
            position, missing = WANTING[full]
            named = [] if call is None else [keyword.value for keyword in call.keywords if keyword.arg]
            arguments = [] if call is None else [*call.args[position:], *named]
            arguments = [argument for argument in arguments if not _is_constant(argument, None)]
            if missing == CHANCE and arguments:
                self._check_seed(arguments[0], full, missing)
            return None if arguments else missing
        why = why_outside(full)
        if call is not None and _finds_itself(full.rpartition(".")[2], call):
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
        if by_name in (DATE, STATE):
            return by_name
        if by_name in (UNSEEDED, CHANCE) or self._takes_seed(value, call):
            seed = None if call is None else seed_in(call) or self._positional_seed(value, call)
            if seed is None:
                return by_name or UNSEEDED
            self._check_seed(seed, full, by_name or UNSEEDED)
        return self._why_arguments(last, call) if call is not None else None

    def _takes_seed(self, value: Any, call: ast.Call | None) -> bool:
        """Whether something draws at random, used like this, unless it gets a seed."""
        if is_a(value, type) and (call is None or self.lookup.seeds_estimators):
            return False
        return bool(_places_of_seeds(value)) and (call is None or _shuffles(value, call))

    def _positional_seed(self, value: Any, call: ast.Call) -> ast.expr | None:
        return next((call.args[place] for place in _places_of_seeds(value) if place < len(call.args)), None)

    # -- seeds

    def _seeds_of(self, call: ast.Call, function: Any, shown: str) -> None:
        """Judges the seeds that one of the user's own functions is given, which itself takes them as they come."""
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        for position, name in _parameters_of_seeds(function).items():
            seed = given.get(name) or (call.args[position] if position < len(call.args) else None)
            self._check_seed(seed, shown, CHANCE)

    def _check_seed(self, seed: ast.expr | None, what: str, why: str) -> None:
        """Says that a seed may be None; what is not a constant may be."""
        if seed is None:
            return

        def say() -> None:
            self._say(f"{what}, whose {shown_node(seed)} may be None,", why, seed.lineno)

        if isinstance(seed, ast.Attribute) and self.scope.is_self(seed.value):
            self.lookup.require_seed(seed.attr, say)
        elif not self._is_constant_seed(seed):
            say()

    def _is_constant_seed(self, seed: ast.expr) -> bool:
        match seed:
            case ast.Constant():
                return seed.value is not None
            case ast.BinOp() | ast.UnaryOp():
                return True  # of which None would be an error
            case ast.BoolOp(op=ast.Or()):
                return self._is_constant_seed(seed.values[-1])
            case ast.IfExp():
                return self._is_constant_seed(seed.body) and self._is_constant_seed(seed.orelse)
            case ast.Call():
                full = self.names.named(seed.func)
                return (
                    full in _NEVER_NONE or full in CLOCKS or full in WANTING
                )  # whose own seed is judged where it stands
            case ast.Name() if self.names.is_local(seed.id):
                return self._is_given_seed(seed.id)
        return _is_seed(self.names.resolve_node(seed)[0])

    def _is_given_seed(self, name: str) -> bool:
        """Whether a variable is a parameter that whoever calls gives as a seed, and nothing else."""
        if len(self.names.settings[name]) > 1 or name not in {parameter.arg for parameter in self.scope.parameters}:
            return False
        default = inspect.signature(self.scope.function).parameters[name].default
        return (name in SEEDS or self.scope.is_root) if default is inspect.Parameter.empty else _is_seed(default)

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
            is_called = full.endswith("methodcaller")
            for argument in call.args[:1] if is_called else call.args:
                name = _text(argument)
                shown = shown_node(call.func)
                if name is None:
                    self._say(shown, COMPUTED_NAME, call.lineno)
                    continue
                later = ast.Call(call.func, call.args[1:], call.keywords) if is_called else None
                self._method(name.rpartition(".")[2], later, f"{shown}({name!r})", call)

    def _partial(self, call: ast.Call) -> None:
        """Judges a function that is called later with what a partial gives it."""
        function = call.args[0]
        value, full = self.names.resolve_node(function)
        later = ast.Call(function, call.args[1:], call.keywords)
        self._ignored.add(id(function))
        if full:
            self._say(shown_node(function), self._why(full, value, later), call.lineno)
        elif isinstance(function, ast.Attribute):
            self._attribute(function, later)

    def _import(self, call: ast.Call) -> None:
        name = _text(call.args[0]) if call.args else None
        if name is None and call.args:
            value = self.names.resolve_node(call.args[0])[0]
            name = value if type(value) is str else None
        if name is None:
            self._say(shown_node(call.func), COMPUTED_MODULE, call.lineno)
            return
        bare = name.lstrip(".")
        self.imports.add((len(name) - len(bare), bare, ()))
        module = imported(bare, len(name) - len(bare), self.names.namespace)
        full = bare if module is None else self.names.full_name(module)
        self._say_handed_on(f"{shown_node(call.func)}({name!r})", full, call.lineno)

    def _getattr(self, call: ast.Call) -> None:
        owner, name = call.args[0], _text(call.args[1])
        value, full = self.names.resolve_node(owner)
        self._ignored.update(map(id, ast.walk(owner) if chain_of(owner) else ()))
        shown = f"getattr({shown_node(owner)}, ...)"
        if name is not None:
            attribute, known = self.names.resolve((*chain_of(owner), name)) if chain_of(owner) else (MISSING, "")
            if known:
                self._say(shown, self._why(known, attribute, None), call.lineno)
            elif METHODS.get(name) not in LIFTED_BY_FILES:
                self._method(name, None, shown, call)
        elif full:
            self._say_handed_on(shown, full, call.lineno)
        elif type(value) is types.ModuleType or isinstance(self.scope.parent(call), ast.Call | ast.Assign):
            self._say(shown, None if self.scope.is_self(owner) else COMPUTED_NAME, call.lineno)

    def _say_handed_on(self, shown: str, full: str, line: int) -> None:
        """Says why a module may not be used as a whole."""
        if full:
            self._say(shown, why_outside(full) or (ANYTHING if hands_on(full) else None), line)

    def _say(self, what: str, why: str | None, line: int) -> None:
        self.lookup.say(self.scope, what, why, line)


# -- values and calls


def seed_in(call: ast.Call) -> ast.expr | None:
    """The expression that a call gives as a seed by name."""
    return next((keyword.value for keyword in call.keywords if keyword.arg in SEEDS), None)


def _is_seed(value: Any) -> bool:
    """Whether a value is there and makes chance repeatable."""
    return value is not MISSING and value is not None


def _is_exception(value: Any) -> bool:
    """Whether something is a class of errors, which does nothing but say what went wrong."""
    return is_readable(value) and issubclass(value, BaseException) if issubclass(type(value), type) else False


def _parameters(value: Any) -> list[inspect.Parameter]:
    if value is MISSING or not (callable(value) or is_a(value, classmethod, staticmethod)):
        return []
    try:
        return list(inspect.signature(value).parameters.values())
    except Exception:  # whatever compiled code and metaclasses raise
        return []


def _places_of_seeds(value: Any) -> list[int]:
    """The positions of a function's or class's parameters that are seeds and None by default."""
    places = enumerate(_parameters(value))
    return [place for place, parameter in places if parameter.name in SEEDS and parameter.default is None]


def _parameters_of_seeds(function: Any) -> dict[int, str]:
    """The position and name of each parameter of one of the user's own functions that is a seed without a default."""
    places = enumerate(_parameters(function))
    return {
        place: parameter.name
        for place, parameter in places
        if parameter.name in SEEDS and parameter.default is parameter.empty
    }


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


def _finds_itself(name: str, call: ast.Call) -> bool:
    """Whether a call asks where the file of the code itself is."""
    return name in FINDS_ITSELF and any(isinstance(part, ast.Name) and part.id == "__file__" for part in ast.walk(call))


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
