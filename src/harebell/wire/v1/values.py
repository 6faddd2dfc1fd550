"""Values of AMQP 1.0 in Python that keep their type.

| Python | AMQP 1.0 | Python | AMQP 1.0 |
|---|---|---|---|
| `None` | null | `UByte`, `UShort`, `UInt`, `ULong` | of the same name |
| `bool` | boolean | `Byte`, `Short`, `Int` | of the same name |
| `int` | long | `Float`; `Decimal32`, `Decimal64`, `Decimal128` | of the same name |
| `float` | double | `Char`, `Timestamp` | of the same name |
| `str` | string | `uuid.UUID` | uuid |
| `Symbol` | symbol | `list`, `tuple`; `dict` | list; map |
| `bytes` | binary | `Array`, `Described` | array; a described value |

A value keeps its type, not its octets: a uint of one octet and one of four are the same `UInt`.
Values compare with those of Python as their Python types do: `UInt(1) == 1`, `Symbol("a") == "a"`.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Symbol(str):
    """A name in ASCII."""

    __slots__ = ()


class Char(str):
    """One Unicode character."""

    __slots__ = ()


class UByte(int):
    """0 to 2**8 - 1."""

    __slots__ = ()


class UShort(int):
    """0 to 2**16 - 1."""

    __slots__ = ()


class UInt(int):
    """0 to 2**32 - 1."""

    __slots__ = ()


class ULong(int):
    """0 to 2**64 - 1."""

    __slots__ = ()


class Byte(int):
    """-2**7 to 2**7 - 1."""

    __slots__ = ()


class Short(int):
    """-2**15 to 2**15 - 1."""

    __slots__ = ()


class Int(int):
    """-2**31 to 2**31 - 1."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970, in 64 bits with a sign."""

    __slots__ = ()


class Float(float):
    """A number of 32 bits (IEEE 754)."""

    __slots__ = ()


class Decimal32(bytes):
    """The four octets of a decimal number (IEEE 754), which are not interpreted."""

    __slots__ = ()


class Decimal64(bytes):
    """The eight octets of a decimal number."""

    __slots__ = ()


class Decimal128(bytes):
    """The sixteen octets of a decimal number."""

    __slots__ = ()


WIDEST = {
    0x41: 0x56,
    0x42: 0x56,
    0x43: 0x70,
    0x44: 0x80,
    0x45: 0xD0,
    0x52: 0x70,
    0x53: 0x80,
    0x54: 0x71,
    0x55: 0x81,
    0xA0: 0xB0,
    0xA1: 0xB1,
    0xA3: 0xB3,
    0xC0: 0xD0,
    0xC1: 0xD1,
    0xE0: 0xF0,
}
"""The code of the same type that every value of it fits."""


class Array(list[Any]):
    """Values of one type.

    Args:
        code: a format code of the type of the values; the attribute is the widest one of the type.
        items: the values, without the descriptors.
        descriptors: those that each value has, the outermost first; () for most arrays.
    """

    __slots__ = ("code", "descriptors")

    def __init__(self, code: int, items: Any = (), descriptors: tuple[Any, ...] = ()) -> None:
        super().__init__(items)
        self.code = WIDEST.get(code, code)
        self.descriptors = descriptors

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Array):
            return super().__eq__(other)
        # A list does not know types: left to it, an array of strings would equal one of symbols.
        same = self.code == other.code and self.descriptors == other.descriptors
        return same and list(self) == list(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        return f"Array({self.code:#04x}, {list(self)!r}, {self.descriptors!r})"


class Described(NamedTuple):
    """A value with a descriptor that says what it stands for.

    Args:
        descriptor: a `ULong` or a `Symbol`, rarely anything else.
        value: of any type.
    """

    descriptor: Any
    value: Any
