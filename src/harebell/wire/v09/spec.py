"""Reads a version's table of methods, and encodes and decodes methods by it.

A table has a line per class and a line per method:

    class queue 50
    c 10 declare  ? declare-ok  -:short queue:shortstr passive:bit ...
    |  |    |          |           |      |
    |  |    |          |           |      field and type
    |  |    |          |           reserved: written as zero or empty, read and dropped
    |  |    |          synchronous: the replies it waits for, separated by commas
    |  |    name
    |  method id
    sent by: c client, s server, b both

`+` in place of the replies marks a method that carries content. A method that comes twice replaces the first, which is how an
extension changes the standard. Bits that follow each other share octets, from the low bit up (AMQP 0-9-1 4.2.5.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harebell.base.errors import ProtocolError
from harebell.wire.v09.fields import decode_table, encode_table
from harebell.wire.v09.methods import CLASSES, Method

RESERVED = "-"
_INTEGERS = {"octet": 1, "short": 2, "long": 4, "longlong": 8}
_EMPTY: dict[str, Any] = {"shortstr": "", "longstr": b"", "table": {}, "bit": False}
_METHOD_HEAD = 4
_BITS = 8


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field: its attribute in the method's class ("" when reserved), and its type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """One method of a version.

    Args:
        name: "queue.declare".
        class_id: id of its class.
        method_id: its id within the class.
        sender: "c" client, "s" server or "b" both.
        responses: the names of the methods that answer it; empty when none does.
        has_content: whether a content header and body follow.
        fields: in order, reserved ones included.
        type: the class in `harebell.wire.v09.methods`.
    """

    name: str
    class_id: int
    method_id: int
    sender: str
    responses: tuple[str, ...]
    has_content: bool
    fields: tuple[FieldSpec, ...]
    type: type[Method]

    @property
    def synchronous(self) -> bool:
        """Whether it waits for an answer."""
        return bool(self.responses)

    @property
    def from_client(self) -> bool:
        """Whether a client may send it."""
        return self.sender in "cb"

    @property
    def from_server(self) -> bool:
        """Whether a server may send it."""
        return self.sender in "sb"


def attribute(field: str) -> str:
    """The attribute of a field: underscores for hyphens, and none that is a Python keyword."""
    if field == RESERVED:
        return ""
    name = field.replace("-", "_")
    return name + "_" if name in ("global", "return", "type_") else name


def _parse(table: str) -> dict[tuple[int, int], MethodSpec]:
    found: dict[tuple[int, int], MethodSpec] = {}
    class_name, class_id = "", 0
    for line in table.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "class":
            class_name, class_id = words[1], int(words[2])
            continue
        sender, number, name, *rest = words
        responses: tuple[str, ...] = ()
        has_content = rest[:1] == ["+"]
        if rest[:1] == ["?"]:
            responses = tuple(f"{class_name}.{r}" for r in rest[1].split(","))
            rest = rest[2:]
        elif has_content:
            rest = rest[1:]
        fields = tuple(FieldSpec(attribute(f), t) for f, t in (w.split(":") for w in rest))
        full = f"{class_name}.{name}"
        found[class_id, int(number)] = MethodSpec(
            full, class_id, int(number), sender, responses, has_content, fields, CLASSES[full]
        )
    return found


class ProtocolSpec:
    """The methods of one version.

    Args:
        version: "0-9-1".
        major: what connection.start says.
        minor: what connection.start says.
        table: the methods, in the form described above.
    """

    def __init__(self, version: str, major: int, minor: int, table: str) -> None:
        self.version = version
        self.major = major
        self.minor = minor
        self._by_id = _parse(table)
        self._by_type = {spec.type: spec for spec in self._by_id.values()}
        self._classes = {s.class_id: s.name.partition(".")[0] for s in self._by_id.values()}

    @property
    def methods(self) -> tuple[MethodSpec, ...]:
        """Every method, in order of class and method id."""
        return tuple(self._by_id[key] for key in sorted(self._by_id))

    def method(self, class_id: int, method_id: int) -> MethodSpec:
        """The method with these ids.

        Raises:
            ProtocolError: 503 for an unknown class, 540 for an unknown method of a known one.
        """
        spec = self._by_id.get((class_id, method_id))
        if spec is not None:
            return spec
        if class_id not in self._classes:
            raise ProtocolError(503, f"unknown class id {class_id}", class_id, method_id)
        text = f"unknown method id {method_id} in class {self._classes[class_id]}"
        raise ProtocolError(540, text, class_id, method_id)

    def spec_of(self, method: Method) -> MethodSpec:
        """The description of a method object."""
        return self._by_type[type(method)]

    def decode(self, payload: bytes) -> Method:
        """The method in a method frame's payload.

        Raises:
            ProtocolError: 502 for arguments that do not fit, 501 for a shortstr that is no UTF-8, and as `method`.
        """
        if len(payload) < _METHOD_HEAD:
            raise ProtocolError(502, "a method frame has at least a class id and a method id")
        spec = self.method(int.from_bytes(payload[:2]), int.from_bytes(payload[2:4]))
        values: dict[str, Any] = {}
        at = _METHOD_HEAD
        bit = 0
        for field in spec.fields:
            if field.type == "bit":
                if bit == 0:
                    _need(payload, at + 1, spec, field)
                    at += 1
                value: Any = bool(payload[at - 1] >> bit & 1)
                bit = (bit + 1) % _BITS
            else:
                bit = 0
                value, at = _decode_field(payload, at, spec, field)
            if field.name:
                values[field.name] = value
        if at != len(payload):
            raise ProtocolError(
                502,
                f"{spec.name}: {len(payload) - at} octets after the last argument",
                spec.class_id,
                spec.method_id,
            )
        return spec.type(**values)

    def encode(self, method: Method) -> bytes:
        """The payload of a method frame.

        Raises:
            ValueError: a value does not fit its field; the text names method and field.
        """
        spec = self._by_type[type(method)]
        if not spec.fields:
            return _head(spec)
        out = bytearray(_head(spec))
        bit = 0
        for field in spec.fields:
            value = getattr(method, field.name) if field.name else _EMPTY.get(field.type, 0)
            if field.type == "bit":
                if bit == 0:
                    out.append(0)
                if value:
                    out[-1] |= 1 << bit
                bit = (bit + 1) % _BITS
                continue
            bit = 0
            try:
                out += _encode_field(field.type, value)
            except (ValueError, OverflowError, TypeError, AttributeError) as error:
                raise ValueError(f"{spec.name}: {field.name}: {error}") from None
        return bytes(out)


@lru_cache(maxsize=512)
def _head(spec: MethodSpec) -> bytes:
    return spec.class_id.to_bytes(2) + spec.method_id.to_bytes(2)


def _need(payload: bytes, end: int, spec: MethodSpec, field: FieldSpec) -> None:
    if end > len(payload):
        raise ProtocolError(
            502,
            f"{spec.name}: {field.name or 'reserved field'} runs over the end of the frame",
            spec.class_id,
            spec.method_id,
        )


def _decode_field(
    payload: bytes, at: int, spec: MethodSpec, field: FieldSpec
) -> tuple[Any, int]:
    size = _INTEGERS.get(field.type)
    if size is not None:
        _need(payload, at + size, spec, field)
        return int.from_bytes(payload[at : at + size]), at + size
    if field.type == "shortstr":
        _need(payload, at + 1, spec, field)
        end = at + 1 + payload[at]
        _need(payload, end, spec, field)
        try:
            return payload[at + 1 : end].decode(), end
        except UnicodeDecodeError:
            raise ProtocolError(
                501, "Malformed UTF-8 in shortstr", spec.class_id, spec.method_id
            ) from None
    _need(payload, at + 4, spec, field)
    end = at + 4 + int.from_bytes(payload[at : at + 4])
    _need(payload, end, spec, field)
    if field.type == "longstr":
        return payload[at + 4 : end], end
    try:
        return decode_table(payload, at)
    except ProtocolError as error:
        raise ProtocolError(
            error.code, f"{spec.name}: {field.name}: {error.text}", spec.class_id, spec.method_id
        ) from None


def _encode_field(kind: str, value: Any) -> bytes:
    size = _INTEGERS.get(kind)
    if size is not None:
        return int(value).to_bytes(size)
    if kind == "shortstr":
        data = value.encode()
        if len(data) > 255:
            raise ValueError(f"a short string has at most 255 octets, not {len(data)}")
        return bytes((len(data),)) + data
    if kind == "longstr":
        data = value.encode() if isinstance(value, str) else bytes(value)
        return len(data).to_bytes(4) + data
    return encode_table(value)
