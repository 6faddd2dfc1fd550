"""Types of values, as Spark and DuckDB both have them, and the columns of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harebell.pipeline.errors import PipelineError
from harebell.wire.arrow import types as arrow
from harebell.wire.arrow.columns import COLUMNS
from harebell.wire.arrow.types import ArrowType

ELSEWHERE = "harebell-elsewhere: "
"""What begins the error text of a value that only Spark converts."""


class NeedsSpark(PipelineError):
    """The statement has something that only Spark does.

    Args:
        what: that thing, to go on behind "the embedded engine does not know".
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"the embedded engine does not know {what}")
        self.what = what


@dataclass(frozen=True)
class Kind:
    """A type.

    Args:
        name: as Spark writes it.
        fields: names and types of the fields of a struct.
        inner: the type of the values of a map.
        scale: digits of a decimal, all and behind the point.
    """

    name: str
    fields: tuple[tuple[str, Kind], ...] = ()
    inner: Kind | None = None
    scale: tuple[int, int] = (0, 0)

    @property
    def whole(self) -> bool:
        """Whether it is an integer."""
        return self.name in (INT.name, LONG.name)

    @property
    def number(self) -> bool:
        """Whether it is a number."""
        return self.whole or self.name in (DOUBLE.name, DECIMAL)

    @property
    def simple(self) -> bool:
        """Whether two values of it can be compared."""
        return not self.fields and self.inner is None


INT, LONG, DOUBLE = Kind("INT"), Kind("BIGINT"), Kind("DOUBLE")
TEXT, BYTES, BOOL = Kind("STRING"), Kind("BINARY"), Kind("BOOLEAN")
TIME, DATE, NULL = Kind("TIMESTAMP"), Kind("DATE"), Kind("VOID")
DECIMAL = "DECIMAL"
INT_END = 2**31
"""The first whole number that is no INT."""
DUCK = {
    INT: "INTEGER",
    LONG: "BIGINT",
    DOUBLE: "DOUBLE",
    TEXT: "VARCHAR",
    BYTES: "BLOB",
    BOOL: "BOOLEAN",
    TIME: "TIMESTAMPTZ",
    DATE: "DATE",
}
"""The names of types in DuckDB."""

_ARROW = {
    arrow.UTF8: TEXT,
    arrow.BINARY: BYTES,
    arrow.INT32: INT,
    arrow.INT64: LONG,
    arrow.BOOL: BOOL,
    arrow.TIMESTAMP: TIME,
}
_EXTRAS = ("headers_json", "headers_raw")
"""Columns that are read only with an option of Spark's source."""


def common(kinds: Iterable[Kind], where: str) -> Kind:
    """Return the type that values of several types have together.

    Raises:
        NeedsSpark: Spark converts them in a way of its own.
    """
    present = list(dict.fromkeys(kind for kind in kinds if kind != NULL))
    if not present:
        return NULL
    if len(present) == 1:
        return present[0]
    if all(kind.whole for kind in present):
        return LONG
    if all(kind.number for kind in present) and DOUBLE in present:
        return DOUBLE
    names = " and ".join(kind.name for kind in present[:2])
    raise NeedsSpark(f"{names} together in {where}")


def _kind_of(kind: ArrowType) -> Kind:
    if kind in _ARROW:
        return _ARROW[kind]
    if kind == arrow.text_map():
        return Kind("MAP", inner=TEXT)
    return Kind("STRUCT", fields=tuple((each.name, _kind_of(each.type)) for each in kind.children))


MESSAGE = {name: _kind_of(kind) for name, kind in COLUMNS.items() if name not in _EXTRAS}
"""The columns of a queue and their types, in their order."""
