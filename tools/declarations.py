"""Write the `.pxd` of every module that is compiled, from the annotations of its `.py`.

    python3 tools/declarations.py     what setup.py does before it compiles

A module is compiled when it imports `harebell.base.c_types`; docs/internals/compiled.md has the
rules. Each `.pxd` outside `kernels/` is written here and is not in Git. Needs nothing but the
standard library.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
C_TYPES = "harebell.base.c_types"
KERNELS = "kernels"
NUMBERS = {
    "u8": "unsigned char",
    "i16": "short",
    "i32": "int",
    "u32": "unsigned int",
    "i64": "long long",
    "u64": "unsigned long long",
    "isize": "Py_ssize_t",
}
PLAIN = {"bool": "bint", "float": "double"}
RESULTS = {
    **{name: (spelled, " except -1") for name, spelled in NUMBERS.items()},
    # Asked, not assumed: a number may be -2 as well, and then there is no exception to raise.
    "i32_or_minus_1": ("int", " except? -2"),
    "i64_or_minus_1": ("long long", " except? -2"),
    "Done": ("int", " except -1"),
}
"""The C types of results that are numbers, and how they report an exception."""
FAILURES = {"bint": " except -1", "double": " except? -1"}
CONTAINERS = {"str", "bytes", "bytearray", "list", "dict", "set", "tuple"}
MARKS = ("C", "Cdef", "Cpdef")
READONLY = "Readonly"
OBJECT = "object"
DISPLAYS = {
    ast.JoinedStr: "str",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Tuple: "tuple",
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.Compare: "bint",
}
COUNTING = ("abs", "int", "len", "max", "min", "round", "sum")
"""Functions whose result may be a number: C has to be told which."""
SLOTS = ("__weakref__", "__dict__")
_KERNEL_CLASS = re.compile(r"cdef class (\w+)")
_KERNEL_FUNCTION = re.compile(r"c(?:p)?def\b(?! inline).*?\b(\w+)\(")
_KERNEL_ATTRIBUTE = re.compile(r"    cdef (?:public |readonly )?[\w ]+?(\w+)$")


class DeclarationError(Exception):
    """A module says too little for C, or what C cannot do; the text names file and line."""


@dataclass
class Function:
    """A C method or C function."""

    name: str
    kind: str
    result: str
    failure: str
    arguments: list[str]
    variables: dict[str, str]

    def lines(self, indent: str = "") -> Iterator[str]:
        """Its declaration."""
        if self.variables:
            types = ", ".join(f'{name}="{spelled}"' for name, spelled in self.variables.items())
            yield f"{indent}@cython.locals({types})"
        arguments = ", ".join(self.arguments)
        yield f"{indent}{self.kind} {self.result} {self.name}({arguments}){self.failure}"


@dataclass
class Class:
    """A compiled class; its attributes have their C type, and who may use them from Python."""

    name: str
    module: str
    base: Class | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)

    def has(self, attribute: str) -> bool:
        """Whether the class or a base declares an attribute."""
        return attribute in self.attributes or (self.base is not None and self.base.has(attribute))

    def method(self, name: str) -> Function | None:
        """The C method of a name, of the class or a base."""
        return self.methods.get(name) or (self.base.method(name) if self.base else None)

    def lines(self) -> Iterator[str]:
        """Its declaration."""
        yield f"cdef class {self.name}{f'({self.base.name})' if self.base else ''}:"
        for name, spelled in self.attributes.items():
            yield f"    cdef {spelled} {name}"
        for function in self.methods.values():
            yield from function.lines("    ")
        if not self.attributes and not self.methods:
            yield "    pass"


class Module:
    """A module that is compiled, or a kernel.

    Args:
        path: its `.py`; of a kernel, its `.pxd`.
        name: its name with dots.

    Attributes:
        needed: names that the declarations use, with the module that has them.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Function | None] = {}
        self.variables: dict[str, str] = {}
        self.needed: dict[str, str] = {}

    @cached_property
    def tree(self) -> ast.Module:
        """Its code."""
        return ast.parse(self.path.read_text("utf-8"), str(self.path))

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """The names that it imports, as module and name there; also those for the type checker."""
        return {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    @cached_property
    def names(self) -> set[str]:
        """Every name that an annotation may use."""
        found = {*dir(builtins), *self.imports}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
        return found

    def refused(self, node: ast.AST, text: str) -> DeclarationError:
        """The error of a line."""
        return DeclarationError(f"{self.path}:{getattr(node, 'lineno', 1)}: {text}")

    def c_name(self, node: ast.AST | None) -> str:
        """The name that an expression has in `c_types`; empty if it comes from elsewhere."""
        home, name = self.imports.get(node.id, ("", "")) if isinstance(node, ast.Name) else ("", "")
        return name if home == C_TYPES else ""

    def mark(self, node: ast.expr | None) -> tuple[str, ast.expr | None]:
        """The mark of an annotation, and what it marks."""
        if isinstance(node, ast.Subscript):
            name = self.c_name(node.value)
            if name in MARKS or name == READONLY:
                return name, node.slice
        return "", node

    def lines(self) -> Iterator[str]:
        """Its `.pxd`."""
        yield f"# tools/declarations.py has written this from {self.path.name}."
        yield "cimport cython"
        for name, home in sorted(self.needed.items(), key=lambda item: item[::-1]):
            yield f"from {home} cimport {name}"
        for name, spelled in self.variables.items():
            yield f"cdef {spelled} {name}"
        for each in self.classes.values():
            yield ""
            yield from each.lines()
        for function in filter(None, self.functions.values()):
            yield ""
            yield from function.lines()


class Declarations:
    """The declarations of all modules below a directory.

    Args:
        source: the directory that has the package.

    Raises:
        DeclarationError: a module cannot be declared.
    """

    def __init__(self, source: Path) -> None:
        self._source = source
        self._kernels: dict[str, Module] = {}
        self.modules: dict[str, Module] = {}
        for path in sorted(source.rglob("*.p[yx]*")):
            name = ".".join(path.relative_to(source).with_suffix("").parts)
            if path.suffix == ".pxd" and KERNELS in path.parts:
                self._kernels[name] = _kernel(path, name)
            elif path.suffix == ".py" and f"from {C_TYPES} import" in path.read_text("utf-8"):
                self.modules[name] = Module(path, name)
        found = self._find_classes()
        for module, node, each in found:
            self._add_attributes(module, node, each)
        for module, node, each in found:
            _check_assignments(module, node, each)
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    self._add_method(module, method, each)
        for module in self.modules.values():
            self._add_functions(module)
        for module in self.modules.values():
            self._add_imported_functions(module)

    def write(self) -> list[Path]:
        """Write each `.pxd` that has changed, remove those of no module; return the modules."""
        texts = {
            module.path.with_suffix(".pxd"): "\n".join([*module.lines(), ""])
            for module in self.modules.values()
        }
        for path in self._source.rglob("*.pxd"):
            if path not in texts and KERNELS not in path.parts:
                path.unlink()
        for path, text in texts.items():
            if not path.exists() or path.read_text("utf-8") != text:
                path.write_text(text, "utf-8")
        return [module.path for module in self.modules.values()]

    # --- classes --------------------------------------------------------------------------------

    def _find_classes(self) -> list[tuple[Module, ast.ClassDef, Class]]:
        """Find the compiled classes, bases first."""
        found: list[tuple[Module, ast.ClassDef, Class]] = []
        pending = [
            (module, node)
            for module in self.modules.values()
            for node in module.tree.body
            if isinstance(node, ast.ClassDef) and not node.decorator_list
        ]
        before = -1
        while len(found) != before:
            before = len(found)
            for module, node in pending:
                base = self._class(module, node.bases[0]) if len(node.bases) == 1 else None
                marked = not node.bases and any(map(module.c_name, ast.walk(node)))
                if node.name not in module.classes and (base or marked):
                    module.classes[node.name] = Class(node.name, module.name, base)
                    found.append((module, node, module.classes[node.name]))
                    if base is not None:
                        self._need(module, base)
        return found

    def _class(self, module: Module, node: ast.expr) -> Class | None:
        """The compiled class that a name means in a module."""
        if not isinstance(node, ast.Name):
            return None
        if node.id in module.classes:
            return module.classes[node.id]
        home, name = module.imports.get(node.id, ("", ""))
        there = self.modules.get(home) or self._kernels.get(home)
        return there.classes.get(name) if there else None

    def _need(self, module: Module, needed: Class) -> str:
        """The name of a class, which a module can use from now on."""
        if needed.module != module.name:
            module.needed[needed.name] = needed.module
        return needed.name

    def _add_attributes(self, module: Module, node: ast.ClassDef, into: Class) -> None:
        """Add what the body of a class annotates, and what its `__init__` sets."""
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                spelled = self._spelled(module, statement.annotation)
                into.attributes[name] = _shown(module, name, statement.annotation, spelled)
                if name not in SLOTS and not any(name == each for each in _set_in(module.tree)):
                    raise module.refused(statement, f"{name} is declared, and nothing here sets it")
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                parameters = {
                    each.arg: each.annotation
                    for each in (*method.args.args, *method.args.kwonlyargs)
                }
                for target, annotation, value in _assignments(method):
                    if into.has(target.attr):
                        continue
                    spelled = (
                        self._spelled(module, annotation)
                        if annotation is not None
                        else self._inferred(module, value, parameters)
                    )
                    if not spelled:
                        raise module.refused(
                            target, f"self.{target.attr} needs an annotation, such as i64"
                        )
                    into.attributes[target.attr] = _shown(module, target.attr, annotation, spelled)

    def _inferred(
        self, module: Module, value: ast.expr | None, parameters: dict[str, ast.expr | None]
    ) -> str:
        """The C type of a value that an attribute gets; empty if it does not say."""
        if isinstance(value, ast.Constant):
            kind = type(value.value).__name__
            return PLAIN.get(kind) or (kind if kind in CONTAINERS else "")
        if isinstance(value, ast.IfExp):
            arms = {
                self._inferred(module, arm, parameters)
                for arm in (value.body, value.orelse)
                if not (isinstance(arm, ast.Constant) and arm.value is None)
            }
            return arms.pop() if len(arms) == 1 else OBJECT
        if isinstance(value, ast.Name):
            # `int` would be Python's: the parameter says which number of C, or the attribute does.
            annotation = parameters.get(value.id)
            plain = isinstance(annotation, ast.Name) and annotation.id == "int"
            return "" if plain else self._spelled(module, annotation)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            made = self._class(module, value.func)
            if made is not None:
                return self._need(module, made)
            return "" if value.func.id in COUNTING else OBJECT
        if isinstance(value, ast.UnaryOp):
            return "bint" if isinstance(value.op, ast.Not) else ""
        return "" if isinstance(value, ast.BinOp) else DISPLAYS.get(type(value), OBJECT)

    # --- types ----------------------------------------------------------------------------------

    def _spelled(self, module: Module, node: ast.expr | None) -> str:
        """The C type of an annotation."""
        node = module.mark(node)[1]
        if node is None:
            return OBJECT
        if isinstance(node, ast.BinOp):
            arms = [
                arm
                for arm in (node.left, node.right)
                if not (isinstance(arm, ast.Constant) and arm.value is None)
            ]
            spelled = self._spelled(module, arms[0]) if len(arms) == 1 else OBJECT
            # No number of C means None.
            return OBJECT if spelled in (*NUMBERS.values(), *PLAIN.values()) else spelled
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id not in module.names:
                raise module.refused(each, f"the type {each.id} is not known here")
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and node.value.id == "Annotated":
                return self._annotated(module, node)
            node = node.value
            return node.id if isinstance(node, ast.Name) and node.id in CONTAINERS else OBJECT
        if not isinstance(node, ast.Name):
            return OBJECT
        named = self._class(module, node)
        if named is not None:
            return self._need(module, named)
        known = NUMBERS.get(module.c_name(node)) or PLAIN.get(node.id)
        return known or (node.id if node.id in CONTAINERS else OBJECT)

    def _annotated(self, module: Module, node: ast.Subscript) -> str:
        """The class that `Annotated[Protocol, "module.Class"]` names, as an import cannot."""
        path = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else None
        if isinstance(path, ast.Constant) and isinstance(path.value, str):
            home, _, name = path.value.rpartition(".")
            there = self.modules.get(home)
            if there is not None and name in there.classes:
                return self._need(module, there.classes[name])
        raise module.refused(node, "Annotated names no compiled class: module.Class")

    # --- functions ------------------------------------------------------------------------------

    def _add_method(self, module: Module, node: ast.FunctionDef, into: Class) -> None:
        """Add a method of a class, if it is one of C."""
        above = into.base.method(node.name) if into.base else None
        function = self._function(module, node, above.kind if above else "")
        if function is not None:
            into.methods[node.name] = function
        elif above is not None:
            raise module.refused(
                node, f"{node.name} is a C method of a base: say its result as there"
            )

    def _add_functions(self, module: Module) -> None:
        """Add the C functions and C variables of a module."""
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef):
                function = self._function(module, node, "")
                if function is not None:
                    module.functions[node.name] = function
            elif (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and (module.mark(node.annotation)[0] or module.c_name(node.annotation))
            ):
                module.variables[node.target.id] = self._spelled(module, node.annotation)

    def _add_imported_functions(self, module: Module) -> None:
        """Have C functions that a module imports called from C."""
        for node in module.tree.body:
            if isinstance(node, ast.ImportFrom):
                there = self.modules.get(node.module or "") or self._kernels.get(node.module or "")
                for alias in node.names:
                    if there and alias.name in there.functions and not alias.asname:
                        module.needed[alias.name] = there.name

    def _function(self, module: Module, node: ast.FunctionDef, kind: str) -> Function | None:
        """The C function that a definition makes; None if it is Python's.

        Args:
            module: its module.
            node: its definition.
            kind: cdef or cpdef, as the base has it; empty if the name decides.
        """
        mark, marked = module.mark(node.returns)
        name = module.c_name(marked)
        if mark not in MARKS and name not in RESULTS:
            _check_python(module, node)
            return None
        if node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.decorator_list:
            raise module.refused(node, f"C has no *, ** or decorators, which {node.name} has")
        result, failure = RESULTS.get(name) or ("", "")
        if not result:
            result = self._spelled(module, marked)
            failure = FAILURES.get(result, "")
        if mark in ("Cdef", "Cpdef"):
            kind = mark.lower()
        required = len(node.args.args) - len(node.args.defaults)
        arguments = [
            "self"
            if each.arg == "self"
            else f"{self._spelled(module, each.annotation)} {each.arg}"
            + ("=*" if number >= required else "")
            for number, each in enumerate(node.args.args)
        ]
        variables = {
            each.target.id: spelled
            for each in ast.walk(node)
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            if (spelled := self._spelled(module, each.annotation)) != OBJECT
        }
        kind = kind or ("cdef" if node.name.startswith("_") else "cpdef")
        return Function(node.name, kind, result, failure, arguments, variables)


def _kernel(path: Path, name: str) -> Module:
    """What the `.pxd` of a kernel declares."""
    module = Module(path, name)
    current = Class("", name)
    for line in path.read_text("utf-8").splitlines():
        line = line.split("#")[0].rstrip()
        if opened := _KERNEL_CLASS.match(line):
            current = module.classes[opened[1]] = Class(opened[1], name)
        elif function := _KERNEL_FUNCTION.match(line):
            module.functions[function[1]] = None
        elif attribute := _KERNEL_ATTRIBUTE.match(line):
            current.attributes[attribute[1]] = OBJECT
    return module


def _shown(module: Module, name: str, annotation: ast.expr | None, spelled: str) -> str:
    """The C type of an attribute, and what Python may do with it."""
    if name.startswith("_"):
        return spelled
    return f"{'readonly' if module.mark(annotation)[0] == READONLY else 'public'} {spelled}"


def _set_in(node: ast.AST) -> Iterator[str]:
    """The attributes that some code sets, of any object."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.attr


def _assignments(
    function: ast.FunctionDef,
) -> list[tuple[ast.Attribute, ast.expr | None, ast.expr | None]]:
    """What a method assigns to its object, in order: the target, its annotation, the value."""
    said: dict[ast.AST, tuple[ast.expr | None, ast.expr | None]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign):
            said[node.target] = (node.annotation, node.value)
        elif isinstance(node, ast.Assign):
            said.update((target, (None, node.value)) for target in node.targets)
    found = [
        (node, *said.get(node, (None, None)))
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    ]
    return sorted(found, key=lambda each: (each[0].lineno, each[0].col_offset))


def _check_assignments(module: Module, node: ast.ClassDef, each: Class) -> None:
    """Refuse an attribute that a method sets and neither `__init__` nor the class declares."""
    properties = {
        item.name for item in node.body if isinstance(item, ast.FunctionDef) and item.decorator_list
    }
    for method in node.body:
        for target, _, _ in _assignments(method) if isinstance(method, ast.FunctionDef) else ():
            if not each.has(target.attr) and target.attr not in properties:
                raise module.refused(
                    target, f"self.{target.attr} is assigned, and {node.name} does not declare it"
                )


def _check_python(module: Module, node: ast.FunctionDef) -> None:
    """Refuse C types where they would have no effect: in a function that is not one of C."""
    taken = () if node.name == "__init__" else (each.annotation for each in node.args.args)
    local = (each.annotation for each in ast.walk(node) if _is_local(each))
    for annotation in (*taken, *local):
        if module.c_name(annotation):
            raise module.refused(
                annotation, f"{node.name} is no C method: its result names no C type, such as Done"
            )


def _is_local(node: ast.AST) -> bool:
    """Whether a statement annotates a local variable."""
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def write(source: Path = SOURCE) -> list[Path]:
    """Write the declarations; return the modules that they are of.

    Raises:
        DeclarationError: a module cannot be declared.
    """
    return Declarations(source).write()


if __name__ == "__main__":
    try:
        write()
    except DeclarationError as error:
        sys.exit(str(error))
