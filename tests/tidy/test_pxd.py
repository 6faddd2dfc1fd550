"""The `.pxd` beside a hot module declares what its classes have, in every method.

Cython compiles a module whose class assigns an attribute that its `.pxd` does not declare. The
assignment fails at run time, and only in compiled code. That `__init__` sets exactly what is
declared is checked in `tests/unit/base/test_typed.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.tidy.sources import ROOT, cython_files, tree

_CLASS = re.compile(r"cdef class (\w+)(?:\((\w+)\))?:")
_FUNCTION = re.compile(r"(?:cpdef|cdef)\b[^=]*?(\w+)\(")
_ATTRIBUTES = re.compile(r"cdef (?:public |readonly )?(?:[\w.]+(?:\[[^\]]*\])? ?\**)? ?([\w, ]+)$")


@dataclass
class Declared:
    """What a `.pxd` declares of one class."""

    base: str | None
    attributes: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)


def augmenting() -> list[Path]:
    """The `.pxd` files of modules that are ordinary Python files."""
    return [
        path
        for path in cython_files()
        if path.suffix == ".pxd"
        and (ROOT / path.with_suffix(".py")).exists()
        and not (ROOT / path.with_suffix(".pyx")).exists()
    ]


def declared(path: Path) -> dict[str, Declared]:
    """The classes of a `.pxd`."""
    found: dict[str, Declared] = {}
    current: Declared | None = None
    block = False
    for line in (ROOT / path).read_text("utf-8").splitlines():
        text = line.split("#")[0].rstrip()
        word = text.strip()
        if text and not text[0].isspace():
            opened = _CLASS.match(word)
            current = found.setdefault(opened[1], Declared(opened[2])) if opened else None
            block = False
        elif current is not None and word:
            if re.fullmatch(r"cdef(?: public| readonly)?:", word):
                block = True
                continue
            if block and not word.startswith(("cdef", "cpdef")):
                word = f"cdef {word}"
            function = _FUNCTION.match(word)
            if function is not None:
                current.methods.add(function[1])
            elif (names := _ATTRIBUTES.match(word)) is not None:
                found_names = {name.split()[-1] for name in names[1].split(",")}
                # Cython gives `__weakref__` and `__dict__` a meaning; nobody assigns them.
                current.attributes |= {each for each in found_names if each[:2] != "__"}
    return found


def classes(path: Path) -> dict[str, ast.ClassDef]:
    """The classes of a Python file."""
    return {node.name: node for node in tree(path).body if isinstance(node, ast.ClassDef)}


def methods(node: ast.ClassDef) -> set[str]:
    """The methods of a class."""
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def assigned(node: ast.ClassDef) -> set[str]:
    """The attributes that the methods of a class assign to their object."""
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
    }


def every() -> Iterator[tuple[Path, str, Declared, ast.ClassDef]]:
    """The classes that have a declaration."""
    for path in augmenting():
        found = classes(path.with_suffix(".py"))
        for name, declaration in declared(path).items():
            if name in found:
                yield path, name, declaration, found[name]


def inherited(declaration: Declared) -> set[str]:
    """The attributes that the bases of a class declare."""
    by_name = {
        name: each
        for path in cython_files()
        if path.suffix == ".pxd"
        for name, each in declared(path).items()
    }
    found: set[str] = set()
    base = declaration.base
    while base is not None and base in by_name:
        found |= by_name[base].attributes
        base = by_name[base].base
    return found


def test_declarations_are_found() -> None:
    found = list(every())
    assert len(found) > 40
    assert sum(len(each.attributes) for _, _, each, _ in found) > 300


def test_every_assigned_attribute_is_declared() -> None:
    missing = [
        f"{path}: {name}.{attribute} is assigned and not declared"
        for path, name, declaration, node in every()
        for attribute in sorted(assigned(node) - declaration.attributes - inherited(declaration))
    ]
    assert not missing, "\n".join(missing)


def test_every_declared_method_exists() -> None:
    gone = [
        f"{path}: {name}.{method} is declared and not defined"
        for path, name, declaration, node in every()
        for method in sorted(declaration.methods - methods(node))
    ]
    assert not gone, "\n".join(gone)
