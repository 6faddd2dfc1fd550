"""What the table of AMQP 1.0 says (`harebell.wire.v1.tables`), and the types made from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import msgspec

from harebell.base.errors import DecodeError
from harebell.wire.table_lines import table_lines
from harebell.wire.v1 import encoding, values
from harebell.wire.v1.described_list import DescribedList
from harebell.wire.v1.values import Array, Described, Symbol

MODULE = "harebell.wire.v1.composites"
"""Where the types are found."""


class Kind(NamedTuple):
    """A type of fields.

    Args:
        annotation: its type in Python.
        accepts: the types of decoded values that it takes; () for every one.
        encode: a value to octets.
        zero: the value of a mandatory field that was not given.
    """

    annotation: Any
    accepts: tuple[type, ...]
    encode: Callable[[Any], bytes]
    zero: Any


KINDS = {
    "any": Kind(Any, (), encoding.encode, None),
    "boolean": Kind(bool, (bool,), encoding.boolean, False),
    "ubyte": Kind(int, (values.UByte,), encoding.ubyte, 0),
    "ushort": Kind(int, (values.UShort,), encoding.ushort, 0),
    "uint": Kind(int, (values.UInt,), encoding.uint, 0),
    "ulong": Kind(int, (values.ULong,), encoding.ulong, 0),
    "timestamp": Kind(int, (values.Timestamp,), encoding.timestamp, 0),
    "binary": Kind(bytes, (bytes,), encoding.binary, b""),
    "string": Kind(str, (str,), encoding.text, ""),
    "symbol": Kind(str, (Symbol,), encoding.symbol, ""),
    "map": Kind(dict[Any, Any], (dict,), encoding.encode, None),
    "fields": Kind(dict[str, Any], (dict,), encoding.fields, None),
}
_DEFAULTS: dict[str, Any] = {"false": False, "true": True}


class Field(NamedTuple):
    """A field of a composite.

    Args:
        name: in the specification.
        attribute: in its Python class.
        kind: the name of its type.
        default: what stands for null; None if nothing does.
        multiple: whether it is a tuple of values.
        mandatory: whether it may not be null.
        limit: its largest value, or of a binary most octets; None if its type says enough.
    """

    name: str
    attribute: str
    kind: str
    default: Any
    multiple: bool
    mandatory: bool
    limit: int | None

    def typed(self) -> tuple[str, Any, Any]:
        """Return name, type and default of its attribute."""
        annotation, _, _, zero = KINDS[self.kind]
        if self.multiple:
            several: Any = tuple.__class_getitem__((annotation, ...))
            return self.attribute, several, ()
        if self.mandatory:
            return self.attribute, annotation, zero
        if self.default is not None or annotation is Any:
            return self.attribute, annotation, self.default
        return self.attribute, annotation | None, None

    def plain(self) -> type | None:
        """Return the type whose values are the attribute as they are; None if there is none.

        It is `object` for all types but described values.
        """
        accepts = KINDS[self.kind].accepts
        if not accepts:
            return object
        looked_at = self.multiple or self.limit is not None or self.kind in _NESTING
        return None if looked_at else accepts[0]

    def decoded(self, value: Any) -> Any:
        """Return the value of the attribute for a decoded value.

        Raises:
            DecodeError: it is null in a mandatory field, or of another type.
        """
        if self.multiple:
            return self._several(value)
        if value is None:
            if self.mandatory:
                raise DecodeError("is mandatory")
            return self.default
        self._check(value)
        return value

    def _several(self, value: Any) -> tuple[Any, ...]:
        """Read null, one value, or an array of them."""
        items = () if value is None else tuple(value) if type(value) is Array else (value,)
        if self.mandatory and not items:
            raise DecodeError("is mandatory")
        for item in items:
            self._check(item)
        return items

    def _check(self, value: Any) -> None:
        accepts = KINDS[self.kind].accepts
        if accepts and type(value) not in accepts:
            raise DecodeError(f"must be {self.kind}, not {type_name(value)}")
        if self.limit is not None:
            size = len(value) if self.kind == "binary" else value
            if size > self.limit:
                what = f"{size} octets" if self.kind == "binary" else f"{size}"
                raise DecodeError(f"{what}, at most {self.limit} may be")
        if self.kind == "fields":
            for key in value:
                if type(key) is not Symbol:
                    raise DecodeError(f"must have symbols as keys, not {type_name(key)}")

    def absent(self) -> Any:
        """Return the value of the attribute that stands for null; `_NEVER` if none does."""
        if self.mandatory:
            return _NEVER
        return () if self.multiple else self.default

    def writer(self) -> Callable[[Any], bytes]:
        """Return what encodes a value of the attribute that does not stand for null.

        It raises TypeError or ValueError for one that does not fit.
        """
        # The types of its elements are those of the kind: all multiple fields hold symbols.
        encode = _some_symbols if self.multiple else KINDS[self.kind].encode
        return partial(_given, encode) if self.mandatory else encode


def _some_symbols(value: Iterable[str]) -> bytes:
    return encoding.symbols(value) if value else _NULL


def _given(encode: Callable[[Any], bytes], value: Any) -> bytes:
    """Encode the value of a mandatory field."""
    if value is None or value == ():
        raise ValueError("is mandatory")
    return encode(value)


_NEVER = object()
_NULL = b"\x40"
_NESTING = ("any", "fields", "map")
"""The kinds that may hold other composites."""


def _with_composites(value: Any, nested: Callable[[Any], Any]) -> Any:
    """Return a value of a field, with the composites that are the value or in its map."""
    if type(value) is Described:
        return nested(value)
    if type(value) is dict and any(type(each) is Described for each in value.values()):
        return {key: nested(each) for key, each in value.items()}
    return value


class CompositeSpec:
    """The specification of one composite.

    Args:
        name: for example "sasl-init".
        code: of its descriptor.
        fields: in order.
        purpose: the docstring of its type.
        whole: whether nulls at its end are written.
    """

    def __init__(
        self, name: str, code: int, fields: tuple[Field, ...], purpose: str, whole: bool = False
    ) -> None:
        self.name = name
        self.code = code
        self.symbol = f"amqp:{name}:list"
        self.fields = fields
        self._min_written = len(fields) if whole else 0
        self._plain = tuple(field.plain() for field in fields)
        # What stands for null, and how many fields must be given.
        self._absent = tuple(field.absent() for field in fields)
        self._writers = tuple(field.writer() for field in fields)
        self._mandatory_count = max(
            (n for n, field in enumerate(fields, 1) if field.mandatory), default=0
        )
        self.head = b"\0" + encoding.ulong(code)
        self.type = cast(
            type[DescribedList],
            msgspec.defstruct(
                "".join(word.capitalize() for word in name.split("-")),
                [field.typed() for field in fields],
                bases=(DescribedList,),
                namespace={"NAME": name, "SPEC": self, "__doc__": purpose},
                module=MODULE,
            ),
        )

    def read(self, items: list[Any], nested: Callable[[Any], Any]) -> DescribedList:
        """Make a composite of the values of its list.

        Args:
            items: the decoded values; the last ones may be missing.
            nested: makes a composite of a described value in a field of any type.

        Raises:
            DecodeError: there are too many, or one does not fit; the text names the field.
        """
        if len(items) > len(self.fields):
            raise DecodeError(
                f"{self.name}: {len(items)} fields, at most {len(self.fields)} may be"
            )
        made: list[Any] = []
        if len(items) < self._mandatory_count:
            items = items + [None] * (self._mandatory_count - len(items))
        # Most fields are null or of the one type that they take.
        for plain, absent, value in zip(self._plain, self._absent, items, strict=False):
            if value is None and absent is not _NEVER:
                made.append(absent)
            elif type(value) is plain or (plain is object and type(value) is not Described):
                made.append(value)
            else:
                made.append(self._decoded(self.fields[len(made)], value, nested))
        made += self._absent[len(items) :]
        return self.type(*made)

    def _decoded(self, field: Field, value: Any, nested: Callable[[Any], Any]) -> Any:
        """Return the attribute for a value that has to be looked at."""
        try:
            if value is not None and field.kind in _NESTING:
                value = _with_composites(value, nested)
            return field.decoded(value)
        except DecodeError as error:
            raise DecodeError(f"{self.name}: {field.name}: {error.text}") from None

    def write(self, value: DescribedList) -> bytes:
        """Return the octets of a composite.

        Raises:
            TypeError, ValueError: a value does not fit; the text names the field.
        """
        items: list[bytes] = []
        # Nulls at the end may be left out (AMQP 1.0 1.4).
        count = self._min_written
        for writer, absent, item in zip(
            self._writers, self._absent, msgspec.structs.astuple(value), strict=True
        ):
            # Most fields are left out.
            if item is absent or (item is None and absent is not _NEVER) or item == absent:
                items.append(_NULL)
                continue
            try:
                octets = writer(item)
            except (TypeError, ValueError) as error:
                name = self.fields[len(items)].name
                raise type(error)(f"{self.name}: {name}: {error}") from None
            items.append(octets)
            if octets != _NULL and len(items) > count:
                count = len(items)
        return self.head + encoding.encode_list(items[:count], count)


def type_name(value: Any) -> str:
    """Return the name of the type that a decoded value has in AMQP 1.0."""
    names = {type(None): "null", bool: "boolean", int: "long", float: "double", str: "string"}
    names |= {bytes: "binary", dict: "map"}
    return names.get(type(value), type(value).__name__.lower())


def read_table(table: str) -> dict[int, CompositeSpec]:
    """Return the composites of a table by code.

    Raises:
        ValueError: the table is invalid.
    """
    specs = {}
    for _, _, line, purpose in table_lines(table):
        head, _, tail = line.partition(" : ")
        name, code, *flags = head.split()
        spec = CompositeSpec(name, int(code, 16), tuple(_fields(tail)), purpose, "whole" in flags)
        specs[spec.code] = spec
    return specs


def _fields(text: str) -> Iterator[Field]:
    for part in text.split(",") if text else ():
        kind, *fields = part.split()
        single = kind.removesuffix("[]")
        if single not in KINDS:
            raise ValueError(f"unknown type {kind!r} in a table; there are {list(KINDS)}")
        for field in fields:
            parsed = _FIELD.fullmatch(field)
            if parsed is None:
                raise ValueError(f"cannot read the field {field!r} in a table")
            name, mandatory, default, limit = parsed.groups()
            yield Field(
                name,
                name.replace("-", "_"),
                single,
                _default(default),
                kind != single,
                bool(mandatory),
                int(limit) if limit else None,
            )


_FIELD = re.compile(r"([a-z-]+)(!?)(?:=([a-z0-9-]+))?(?:<=([0-9]+))?")


def _default(text: str | None) -> Any:
    if text is None:
        return None
    return int(text) if text.isdigit() else _DEFAULTS.get(text, text)
