"""The types of compiled code: a module that imports this one is compiled.

To Python and to the type checker they are what they stand for: `i64` is `int`, `C[str]` is `str`.
`tools/declarations.py` makes C declarations of them (docs/internals/compiled.md).
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, TypeVar

_T = TypeVar("_T")

u8: TypeAlias = int
"""`unsigned char`. As the result of a C method, no number below may be -1: that is an exception."""
i16: TypeAlias = int
"""`short`."""
i32: TypeAlias = int
"""`int`."""
u32: TypeAlias = int
"""`unsigned int`."""
i64: TypeAlias = int
"""`long long`."""
u64: TypeAlias = int
"""`unsigned long long`."""
isize: TypeAlias = int
"""`Py_ssize_t`, as `len` returns it."""
i32_or_minus_1: TypeAlias = int
"""The result of a C method that is an `i32` and may be -1, or any other number."""
i64_or_minus_1: TypeAlias = int
"""The result of a C method that is an `i64` and may be -1, or any other number."""
Done: TypeAlias = int
"""The result of a C method that returns nothing: it is always 0, because C reports an exception by
the value -1."""

C = Annotated[_T, "C"]
"""As a result, it makes a C method or C function; for a name of the module, a C variable."""
Cdef = Annotated[_T, "cdef"]
"""As `C`; the method can be called from compiled code only, as all that begin with `_` can."""
Cpdef = Annotated[_T, "cpdef"]
"""As `C`; the method can be called from Python, as all can that do not begin with `_`."""
Readonly = Annotated[_T, "readonly"]
"""An attribute that Python may read, and only compiled code may set."""
Py = Annotated[_T, "object"]
"""C sees any Python object: a test or another class may put one of another class there."""
