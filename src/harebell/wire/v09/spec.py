"""The tables of the protocol versions: how they are written, and the codec made from them.

A table has a line per class and, indented, a line per method; deeper indentation continues a line:

    queue 50                                    class and class id
      delete     40  C  -> delete-ok: short _, shortstr queue, bit if-unused if-empty nowait
      delete-ok  41  S  : long message-count
      |          |   |  |             |
      method     id  |  replies       fields: a data type, then the fields of that type in a row
                     C the client sends it, S the server, CS both

`+content` before them says that a content follows. The field `_` is reserved: it is written
as zero or empty, and ignored when read. `#` begins a comment.

A version may be written as its differences from another. Its table is then laid over the other
version: a method that stands in both replaces the one below, and lines with `-` remove:

    - test dtx                                  two classes, with all their methods
    queue 50
      - unbind unbind-ok                        two methods of the class queue

On the wire a method is class id, method id, fields (AMQP 0-9-1 4.2.4). Neighbouring bits share
octets, eight to an octet from the lowest bit up (4.2.5.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harebell.base.errors import ProtocolError
from harebell.wire.table_lines import REMOVE, table_lines
from harebell.wire.v09.domains import BIT, DOMAINS, Domain, overrun
from harebell.wire.v09.methods import METHODS, Method

RESERVED = ""
"""Attribute of a reserved field."""

_HEAD = 4
_ATTRIBUTES = {
    "_": RESERVED,
    "global": "global_",
    "bytes": "octets",
    "reject-unroutable": "mandatory",
}


class Field(NamedTuple):
    """A field of a method.

    Args:
        name: the name in the specification, "_" when reserved.
        attribute: the name in the method's class, "" when reserved.
        domain: the data type.
    """

    name: str
    attribute: str
    domain: str


class MethodSpec:
    """What a version says about one method.

    Args:
        name: for example "queue.declare".
        class_id: the number of the class in the specification.
        method_id: its number within the class.
        senders: "C", "S" or "CS".
        responses: names of the methods that may answer it; it is synchronous when there are any.
        has_content: whether a content follows.
        fields: its fields in order, reserved ones included.
        types: the data types of fields, by name.

    Raises:
        ValueError: no class for the method was imported that it fits.
    """

    def __init__(
        self,
        name: str,
        class_id: int,
        method_id: int,
        senders: str,
        responses: tuple[str, ...],
        has_content: bool,
        fields: tuple[Field, ...],
        types: Mapping[str, Domain],
    ) -> None:
        kind = METHODS.get(name)
        if kind is None:
            raise ValueError(f"harebell.wire.v09.methods has no class for {name}")
        for field in fields:
            if field.attribute and field.attribute not in kind.__struct_fields__:
                raise ValueError(f"{name}: {kind.__name__} has no attribute {field.attribute}")
        self.name = name
        self.class_id = class_id
        self.method_id = method_id
        self.from_client = "C" in senders
        self.from_server = "S" in senders
        self.responses = responses
        self.synchronous = bool(responses)
        self.has_content = has_content
        self.fields = fields
        self.type: type[Method] = kind
        self.head = class_id.to_bytes(2) + method_id.to_bytes(2)
        self._runs = tuple(_runs(fields, types))

    def __repr__(self) -> str:
        return f"<{self.name} {self.class_id}.{self.method_id}>"

    def encode(self, method: Method) -> bytes:
        """The payload of a method frame.

        Raises:
            ValueError: a value does not fit its field.
            TypeError: a value is of another type than its field.
        """
        out = bytearray(self.head)
        for fields, domain in self._runs:
            if domain is None:
                out += self._pack_bits(method, fields)
                continue
            (field,) = fields
            value = getattr(method, field.attribute) if field.attribute else domain.zero
            try:
                out += domain.write(value)
            except ValueError as error:
                raise ValueError(f"{self.name}: {field.name}: {error}") from None
            except TypeError as error:
                raise TypeError(f"{self.name}: {field.name}: {error}") from None
        return bytes(out)

    def decode(self, payload: bytes) -> Method:
        """The method in a method frame's payload, which begins with this method's ids.

        Raises:
            ProtocolError: 502 for fields that do not fill the frame exactly, 501 for bad text.
        """
        at = _HEAD
        values: dict[str, Any] = {}
        for fields, domain in self._runs:
            try:
                if domain is None:
                    at = _unpack_bits(payload, at, fields, values)
                    continue
                value, at = domain.read(payload, at)
            except ProtocolError as error:
                raise self._error(error, fields[0]) from None
            if fields[0].attribute:
                values[fields[0].attribute] = value
        if at != len(payload):
            text = f"{self.name}: {len(payload) - at} octets of garbage after the last field"
            raise ProtocolError(502, text, self.class_id, self.method_id)
        return self.type(**values)

    def _error(self, error: ProtocolError, field: Field) -> ProtocolError:
        text = error.text
        if error.code == 502:
            name = "reserved field" if field.attribute == RESERVED else f"field '{field.name}'"
            text = f"{self.name}: {name}: {text}"
        return ProtocolError(error.code, text, self.class_id, self.method_id)

    def _pack_bits(self, method: Method, fields: tuple[Field, ...]) -> bytes:
        octets = 0
        for place, field in enumerate(fields):
            if field.attribute:
                value = getattr(method, field.attribute)
                if value not in (False, True):
                    raise TypeError(f"{self.name}: {field.name}: must be a bool, not {value!r}")
                octets |= int(value) << place
        return octets.to_bytes((len(fields) + 7) // 8, "little")


def _unpack_bits(payload: bytes, at: int, fields: tuple[Field, ...], values: dict[str, Any]) -> int:
    end = at + (len(fields) + 7) // 8
    if end > len(payload):
        raise overrun()
    octets = int.from_bytes(payload[at:end], "little")
    for place, field in enumerate(fields):
        if field.attribute:
            values[field.attribute] = bool(octets >> place & 1)
    return end


def _runs(
    fields: tuple[Field, ...], types: Mapping[str, Domain]
) -> Iterator[tuple[tuple[Field, ...], Domain | None]]:
    """Fields that are coded together: neighbouring bits (domain None), or one other field."""
    bits: list[Field] = []
    for field in fields:
        if field.domain == BIT:
            bits.append(field)
            continue
        if bits:
            yield tuple(bits), None
            bits = []
        yield (field,), types[field.domain]
    if bits:
        yield tuple(bits), None


class ProtocolSpec:
    """A version of the protocol: its methods and their codec.

    Args:
        version: for example "0-9-1".
        layers: a table or the version to begin with, and the tables laid over it.
        types: what the tables may use as data types, by name.

    Raises:
        ValueError: a table that cannot be read.
    """

    def __init__(
        self, version: str, *layers: ProtocolSpec | str, types: Mapping[str, Domain] = DOMAINS
    ) -> None:
        self.version = version
        self._by_name: dict[str, MethodSpec] = {}
        for layer in layers:
            if isinstance(layer, ProtocolSpec):
                self._by_name |= {spec.name: spec for spec in layer.methods}
            else:
                self._lay(layer, types)
        specs = self._by_name.values()
        self._classes = {spec.class_id: spec.name.partition(".")[0] for spec in specs}
        self._by_head = {spec.head: spec for spec in specs}
        self._by_type = {spec.type: spec for spec in specs}
        if len(self._by_head) != len(self._by_name):
            raise ValueError(f"the tables of {version} give one number to two methods")

    def _lay(self, table: str, types: Mapping[str, Domain]) -> None:
        """Add, replace and remove what a table says."""
        for class_name, class_id, line in table_lines(table):
            if line.startswith(REMOVE):
                for name in line.removeprefix(REMOVE).split():
                    self._remove(f"{class_name}.{name}" if class_name else f"{name}.")
            else:
                spec = _read_method(class_name, class_id, line, types)
                self._by_name[spec.name] = spec

    def _remove(self, removed: str) -> None:
        """Remove one method, or all methods of a class if it ends in a dot."""
        if removed.endswith("."):
            names = [name for name in self._by_name if name.startswith(removed)]
        else:
            names = [name for name in self._by_name if name == removed]
        if not names:
            what = removed.rstrip(".")
            raise ValueError(f"the tables of {self.version} remove {what}, which is not there")
        for name in names:
            del self._by_name[name]

    def __repr__(self) -> str:
        return f"<AMQP {self.version}, {len(self._by_name)} methods>"

    @property
    def methods(self) -> tuple[MethodSpec, ...]:
        """Every method, in order of class and method id."""
        return tuple(self._by_head[head] for head in sorted(self._by_head))

    def encode(self, method: Method) -> bytes:
        """The payload of a method frame.

        Raises:
            ValueError: a value does not fit its field; the text names method and field.
            TypeError: a value of a wrong type, or a method that this version does not have.
        """
        return self.spec_of(method).encode(method)

    def decode(self, payload: bytes) -> Method:
        """The method in a method frame's payload.

        Raises:
            ProtocolError: 502 for fields that do not fit, 501 for text that is no UTF-8, and
                as `method` for a method that this version does not have.
        """
        spec = self._by_head.get(payload[:_HEAD])
        if spec is None:
            if len(payload) < _HEAD:
                text = f"a method frame of {len(payload)} octets has no class and method id"
                raise ProtocolError(502, text)
            spec = self.method(int.from_bytes(payload[:2]), int.from_bytes(payload[2:_HEAD]))
        return spec.decode(payload)

    def method(self, class_id: int, method_id: int) -> MethodSpec:
        """A method by its numbers.

        Raises:
            ProtocolError: 503 for an unknown class, 540 for an unknown method of a known class.
        """
        spec = self._by_head.get(class_id.to_bytes(2) + method_id.to_bytes(2))
        if spec is not None:
            return spec
        name = self._classes.get(class_id)
        if name is None:
            raise ProtocolError(503, f"unknown class id {class_id}", class_id, method_id)
        text = f"unknown method id {method_id} in class {name}"
        raise ProtocolError(540, text, class_id, method_id)

    def named(self, name: str) -> MethodSpec:
        """A method by its name, for example "queue.declare"; KeyError when there is none."""
        return self._by_name[name]

    def knows(self, method: Method) -> bool:
        """Whether this version has the method."""
        return type(method) in self._by_type

    def spec_of(self, method: Method) -> MethodSpec:
        """What this version says about a method; TypeError when it does not have it."""
        spec = self._by_type.get(type(method))
        if spec is None:
            raise TypeError(f"AMQP {self.version} has no method {method!r}")
        return spec


def _read_method(
    class_name: str, class_id: int, line: str, types: Mapping[str, Domain]
) -> MethodSpec:
    head, _, tail = line.partition(":")
    name, number, senders, *rest = head.split()
    has_content = rest[:1] == ["+content"]
    rest = rest[has_content:]
    responses: tuple[str, ...] = ()
    if rest[:1] == ["->"]:
        responses = tuple(f"{class_name}.{reply}" for reply in rest[1:])
    elif rest:
        raise ValueError(f"{class_name}.{name}: cannot read {' '.join(rest)!r}")
    return MethodSpec(
        f"{class_name}.{name}",
        class_id,
        int(number),
        senders,
        responses,
        has_content,
        tuple(_read_fields(tail, types)),
        types,
    )


def _read_fields(text: str, types: Mapping[str, Domain]) -> Iterator[Field]:
    for group in text.split(","):
        domain, *names = group.split() or [BIT]
        if domain != BIT and domain not in types:
            known = ", ".join((BIT, *types))
            raise ValueError(f"unknown data type {domain!r} in a table; there are {known}")
        for name in names:
            yield Field(name, _ATTRIBUTES.get(name, name.replace("-", "_")), domain)
