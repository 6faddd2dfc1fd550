"""The declarations of compiled modules come from their annotations, and lack nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAD = "from __future__ import annotations\nfrom harebell.base.c_types import Done, i64\n"
END = "\n    def end(self) -> Done:\n        return 0\n"


@pytest.fixture
def declarations(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import declarations

    yield declarations
    del sys.modules["declarations"]


def package(root: Path, **modules: str) -> Path:
    """A directory with modules, whose names have `__` for a dot."""
    for name, text in modules.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


SHELF = """\
from __future__ import annotations

from typing import Annotated, Any, Protocol

from harebell.base.c_types import C, Cdef, Cpdef, Done, Py, Readonly, i32, i64, i64_or_minus_1
from harebell.kernels.rows import Rows

_MAX: i64 = 1 << 20
_NOWHERE: C[tuple[str, ...]] = ()
NAMES: dict[str, str] = {}


class Owner(Protocol):
    name: str


class Shelf:
    __weakref__: object
    first: i64

    def __init__(self, size: i32, names: list[str], rows: Rows | None = None) -> None:
        self.first = 0
        self.size = size
        self.names = names
        self.full = False
        self.label = "shelf"
        self._rows = rows
        self._seconds = 0.5
        self.place: Readonly[i32] = 7
        self._next: Shelf | None = None
        self._other: Py[Shelf | None] = None
        self._owner: Annotated[Owner, "harebell.owners.ShelfOwner"] = names[0]
        self._any = names[0]

    def put(self, position: i64, flag: bool, name: str | None = None) -> Done:
        count: i64 = position + 1
        below: Shelf | None = self._next
        text: Any = count, below
        self.first = text[0]
        return 0

    def find(self, position: i64) -> i64_or_minus_1:
        return -1

    def next(self) -> C[Shelf | None]:
        return self._next

    def inside(self) -> Cdef[Done]:
        return 0

    def _outside(self) -> Cpdef[bool]:
        return True

    def _seen(self, now: float) -> C[float]:
        return now

    def plain(self, position: int) -> int:
        return position


class TallShelf(Shelf):
    def inside(self) -> Done:
        return 0


def new_shelf(size: i32) -> C[Shelf]:
    return Shelf(size, [])
"""

DECLARED = """\
# tools/declarations.py has written this from shelf.py.
cimport cython
from harebell.kernels.rows cimport Rows
from harebell.owners cimport ShelfOwner
cdef long long _MAX
cdef tuple _NOWHERE

cdef class Shelf:
    cdef object __weakref__
    cdef public long long first
    cdef public int size
    cdef public list names
    cdef public bint full
    cdef public str label
    cdef Rows _rows
    cdef double _seconds
    cdef readonly int place
    cdef Shelf _next
    cdef object _other
    cdef ShelfOwner _owner
    cdef object _any
    @cython.locals(count="long long", below="Shelf")
    cpdef int put(self, long long position, bint flag, str name=*) except -1
    cpdef long long find(self, long long position) except? -2
    cpdef Shelf next(self)
    cdef int inside(self) except -1
    cpdef bint _outside(self) except -1
    cdef double _seen(self, double now) except? -1

cdef class TallShelf(Shelf):
    cdef int inside(self) except -1

cpdef Shelf new_shelf(int size)
"""


def test_a_module_is_declared_as_its_annotations_say(tmp_path: Path, declarations) -> None:
    owners = f"{HEAD}class ShelfOwner:\n    def begin(self) -> Done:\n        return 0\n"
    users = "from harebell.shelf import Shelf, new_shelf\n"
    users += HEAD + "class User:\n    def use(self, shelf: Shelf) -> Done:\n        return 0\n"
    root = package(
        tmp_path, harebell__shelf=SHELF, harebell__owners=owners, harebell__plain="x = 1\n"
    )
    package(root, harebell__users=users)
    (root / "harebell/kernels").mkdir()
    (root / "harebell/kernels/rows.pxd").write_text("cdef class Rows:\n    cdef int count\n")
    (root / "harebell/gone.pxd").write_text("")
    written = declarations.write(root)
    assert sorted(path.stem for path in written) == ["owners", "shelf", "users"]
    assert (root / "harebell/shelf.pxd").read_text() == DECLARED
    imported = (root / "harebell/users.pxd").read_text()
    assert "from harebell.shelf cimport Shelf\nfrom harebell.shelf cimport new_shelf\n" in imported
    assert not (root / "harebell/plain.pxd").exists()
    assert not (root / "harebell/gone.pxd").exists()
    assert (root / "harebell/kernels/rows.pxd").exists()


def test_a_declaration_that_stays_the_same_is_not_written_again(
    tmp_path: Path, declarations
) -> None:
    root = package(tmp_path, harebell__shelf=f"{HEAD}class A:\n    def f(self) -> Done: ...\n")
    declarations.write(root)
    written = (root / "harebell/shelf.pxd").stat()
    declarations.write(root)
    assert (root / "harebell/shelf.pxd").stat().st_mtime_ns == written.st_mtime_ns


METHOD = "    def f(self) -> Done:\n        "
INIT = "    def __init__(self, size: int) -> None:\n        "


@pytest.mark.parametrize(
    ("body", "line", "text"),
    [
        (f"{METHOD}self.late = 1", 7, "self.late is assigned, and A does not declare it"),
        (f"{METHOD}x: i65 = 1", 7, "the type i65 is not known here"),
        (
            "    def f(self, x: Gone) -> Done:\n        return 0",
            6,
            "the type Gone is not known here",
        ),
        (f"{INIT}self.size = size", 7, "self.size needs an annotation, such as i64"),
        (f"{INIT}self.size = 3", 7, "self.size needs an annotation, such as i64"),
        (f"{INIT}self.size = -1", 7, "self.size needs an annotation, such as i64"),
        (f"{INIT}self.size = 1 << 3", 7, "self.size needs an annotation, such as i64"),
        (f"{INIT}self.size = int(size)", 7, "self.size needs an annotation, such as i64"),
        ("    size: i64", 6, "size is declared, and nothing here sets it"),
        ("    def f(self, *, x: int) -> Done:\n        return 0", 6, "C has no *, ** or"),
        ("    def f(self, x: i64) -> int:\n        return x", 6, "f is no C method"),
        ("    def f(self) -> int:\n        x: i64 = 1\n        return x", 7, "f is no C method"),
        (
            f"{METHOD}return 0\nclass B(A):\n    def f(self) -> int:\n        return 0",
            9,
            "f is a C method of a base: say its result as there",
        ),
    ],
)
def test_what_c_cannot_know_is_refused_with_file_and_line(
    tmp_path: Path, declarations, body: str, line: int, text: str
) -> None:
    root = package(tmp_path, harebell__shelf=f"{HEAD}class A:{END}{body}\n")
    with pytest.raises(declarations.DeclarationError) as refused:
        declarations.Declarations(root)
    assert str(refused.value).startswith(f"{root}/harebell/shelf.py:{line}: {text}")


def test_every_compiled_module_of_the_package_can_be_declared(declarations) -> None:
    modules = declarations.Declarations(ROOT / "src").modules
    assert "harebell.base.message" in modules
    assert "harebell.cli.main" not in modules
    classes = [each for module in modules.values() for each in module.classes.values()]
    assert len(classes) > 70
    assert sum(len(each.attributes) for each in classes) > 600
