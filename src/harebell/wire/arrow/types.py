"""Columns and their types, as far as messages have them."""

from __future__ import annotations

from dataclasses import dataclass

from harebell.wire.arrow.flat import Node, Scalar, Table, Text, Vector

_MICROSECOND = 2


@dataclass(frozen=True)
class Type:
    """A type of Arrow.

    Args:
        name: what it is called here: binary, utf8, bool, int32, int64, timestamp, struct or map.
        children: the fields of a struct, or the entries of a map.
    """

    name: str
    children: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Column:
    """A named column, or a field within one.

    Args:
        name: its name.
        type: its type.
        nullable: whether it may have no value.
    """

    name: str
    type: Type
    nullable: bool = True


BINARY = Type("binary")
UTF8 = Type("utf8")
BOOL = Type("bool")
INT32 = Type("int32")
INT64 = Type("int64")
TIMESTAMP = Type("timestamp")
"""Microseconds since 1970, UTC."""

_NUMBERS = {"int32": 2, "int64": 2, "binary": 4, "utf8": 5, "bool": 6, "timestamp": 10}
_NUMBERS |= {"struct": 13, "map": 17}


def struct(*fields: Column) -> Type:
    """A struct."""
    return Type("struct", fields)


def text_map() -> Type:
    """A map from text to text that may be null."""
    entries = struct(Column("key", UTF8, nullable=False), Column("value", UTF8))
    return Type("map", (Column("entries", entries, nullable=False),))


def _type_table(kind: Type) -> Table:
    if kind.name in ("int32", "int64"):
        return Table({0: Scalar("i", int(kind.name[3:])), 1: Scalar("B", 1)})
    if kind.name == "timestamp":
        return Table({0: Scalar("h", _MICROSECOND), 1: Text("UTC")})
    return Table({})


def field_table(column: Column) -> Table:
    """A column as the metadata has it."""
    children: list[Node] = [field_table(child) for child in column.type.children]
    return Table(
        {
            0: Text(column.name),
            1: Scalar("B", int(column.nullable)),
            2: Scalar("B", _NUMBERS[column.type.name]),
            3: _type_table(column.type),
            5: Vector(children),
        }
    )
