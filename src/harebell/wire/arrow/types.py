"""Arrow columns and types, limited to those of messages."""

from __future__ import annotations

from dataclasses import dataclass

from harebell.wire.arrow.flat import FlatNode, FlatTable, FlatText, Scalar, Vector

_MICROSECOND = 2


@dataclass(frozen=True)
class ArrowType:
    """An Arrow type.

    Args:
        name: binary, utf8, bool, int32, int64, timestamp, struct or map.
        children: the fields of a struct, or the entries of a map.
    """

    name: str
    children: tuple[ArrowColumn, ...] = ()


@dataclass(frozen=True)
class ArrowColumn:
    """A named column, or a field within one.

    Args:
        name: unique in its schema.
        type: of each of its values.
        nullable: whether values may be null.
    """

    name: str
    type: ArrowType
    nullable: bool = True


BINARY = ArrowType("binary")
UTF8 = ArrowType("utf8")
BOOL = ArrowType("bool")
INT32 = ArrowType("int32")
INT64 = ArrowType("int64")
TIMESTAMP = ArrowType("timestamp")
"""Microseconds since 1970, UTC."""

# The numbers of the union `Type` in Arrow's Schema.fbs; a width or unit is in the type's table.
_NUMBERS = {"int32": 2, "int64": 2, "binary": 4, "utf8": 5, "bool": 6, "timestamp": 10}
_NUMBERS |= {"struct": 13, "map": 17}


def struct(*fields: ArrowColumn) -> ArrowType:
    """Return a struct type."""
    return ArrowType("struct", fields)


def text_map() -> ArrowType:
    """Return a nullable map from text to text."""
    entries = struct(ArrowColumn("key", UTF8, nullable=False), ArrowColumn("value", UTF8))
    return ArrowType("map", (ArrowColumn("entries", entries, nullable=False),))


def _type_table(kind: ArrowType) -> FlatTable:
    # Fields of the table Int in Schema.fbs: 0 the width in bits, 1 whether it is signed.
    if kind.name in ("int32", "int64"):
        return FlatTable({0: Scalar("i", int(kind.name[3:])), 1: Scalar("B", 1)})
    if kind.name == "timestamp":
        return FlatTable({0: Scalar("h", _MICROSECOND), 1: FlatText("UTC")})
    return FlatTable({})


def field_table(column: ArrowColumn) -> FlatTable:
    """Return a column for the metadata."""
    children: list[FlatNode] = [field_table(child) for child in column.type.children]
    # Fields of the table Field in Schema.fbs; 4 is the dictionary, which no column has.
    return FlatTable(
        {
            0: FlatText(column.name),
            1: Scalar("B", int(column.nullable)),
            2: Scalar("B", _NUMBERS[column.type.name]),
            3: _type_table(column.type),
            5: Vector(children),
        }
    )
