"""The two halves of a hot class agree: what `__init__` sets and what its `.pxd` declares.

An attribute that only the `.py` has makes the compiled class fail at run time, on the path that
sets it; one that only the `.pxd` has is memory in every object for nothing.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import harebell

SOURCE = Path(harebell.__file__).parent
_CLASS = re.compile(r"cdef class (\w+)(?:\((\w+)\))?:")
_ATTRIBUTE = re.compile(r"    cdef (?:readonly |public )?[\w ]+?(\w+)$")


def declared(path: Path) -> dict[str, set[str]]:
    """The attributes of each class of a `.pxd`."""
    found: dict[str, set[str]] = {}
    current: set[str] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        heading = _CLASS.match(line)
        if heading:
            current = found.setdefault(heading[1], set())
            continue
        if line and not line.startswith(" "):
            current = set()
        attribute = _ATTRIBUTE.match(line.split("#")[0].rstrip())
        if attribute and attribute[1] != "__weakref__":
            current.add(attribute[1])
    return found


def set_in(function: ast.AST, holder: str) -> set[str]:
    """The attributes of `holder` that a function sets."""
    return {
        node.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == holder
    }


def initialised(path: Path) -> dict[str, set[str]]:
    """The attributes that each class of a `.py` sets when it is made."""
    found: dict[str, set[str]] = {}
    module = ast.parse(path.read_text(encoding="utf-8"))
    for node in module.body:
        if not isinstance(node, ast.ClassDef):
            continue
        own: set[str] = set()
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                own |= set_in(item, "self")
                for call in ast.walk(item):
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                        own |= filled_by(module, call)
        found[node.name] = own
    return found


def filled_by(module: ast.Module, call: ast.Call) -> set[str]:
    """The attributes that a helper of the module sets on the object it gets first."""
    for node in module.body:
        if (
            isinstance(call.func, ast.Name)
            and isinstance(node, ast.FunctionDef)
            and node.name == call.func.id
            and call.args
            and ast.unparse(call.args[0]) == "self"
        ):
            return set_in(node, node.args.args[0].arg)
    return set()


def inherited(path: Path, name: str) -> set[str]:
    """The attributes that the bases of a class of a `.pxd` declare."""
    text = path.read_text(encoding="utf-8")
    base = next((match[2] for match in _CLASS.finditer(text) if match[1] == name), None)
    home = re.search(rf"^from ([\w.]+) cimport .*\b{base}\b", text, re.MULTILINE)
    if base is None or home is None:
        return set()
    other = SOURCE.parent / (home[1].replace(".", "/") + ".pxd")
    return declared(other).get(base, set()) | inherited(other, base)


PAIRS = [
    path.with_suffix("")
    for path in sorted(SOURCE.rglob("*.pxd"))
    if not path.with_suffix(".pyx").exists() and path.with_suffix(".py").exists()
]
ALONE = [
    path
    for path in sorted(SOURCE.rglob("*.pxd"))
    if not path.with_suffix(".pyx").exists() and not path.with_suffix(".py").exists()
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: str(pair.relative_to(SOURCE)))
def test_a_typed_class_declares_exactly_what_it_sets(pair: Path) -> None:
    attributes = initialised(pair.with_suffix(".py"))
    for name, names in declared(pair.with_suffix(".pxd")).items():
        assert name in attributes, f"{name} has a declaration and no class"
        assert attributes[name] - inherited(pair.with_suffix(".pxd"), name) == names, name


def test_declarations_without_a_module_are_inlined_functions() -> None:
    for path in ALONE:
        assert declared(path) == {}, f"{path} declares a class that no module defines"


def test_the_pairs_are_found() -> None:
    names = {pair.name for pair in PAIRS}
    assert {"message", "sequence", "queue", "channel", "connection"} <= names
    assert [path.name for path in ALONE] == ["octets.pxd"]
    assert declared(SOURCE / "base" / "gauge.pxd") == {
        "Gauge": {
            *("used", "unread", "uncommitted", "over", "high", "low", "_bodies"),
            *("other", "room", "measure"),
        }
    }
