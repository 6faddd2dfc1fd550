"""The tables of the protocol versions: their format, and the types and the codec made from them.

A table has a line per class and, indented, a line per method; deeper indentation continues a line:

    queue 50                                    class and class id
      delete     40  C  -> delete-ok: short _, shortstr queue, bit if-unused if-empty nowait
      delete-ok  41  S  : long message-count
      |          |   |  |             |
      method     id  |  replies       fields: a data type, then the fields of that type in a row
                     C the client sends it, S the server, CS both

`+content` before them says that a content follows. `#` begins a comment. The entry of a method in
the first version that has it ends in quotation marks with what the method is for, and names the
attributes of all versions, from which the type of the method is made:

    short reply-code=200       an attribute with a default that is not zero or empty
    short _ticket, bit _       reserved fields: written as zero or empty, and ignored when read;
                               `_ticket` is an attribute nonetheless, as other versions have it
    shortstr* alternate-exchange     an attribute that only other versions have as a field

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
from typing import Any, NamedTuple, cast

import msgspec

from harebell.base.errors import ProtocolError
from harebell.wire.table_lines import REMOVE, Entry, table_lines
from harebell.wire.v09.domains import BIT, DOMAINS, Domain, overrun
from harebell.wire.v09.method import METHODS, Method

RESERVED = ""
"""The attribute name of a reserved field: it has none."""

_HEAD = 4
_KNOWN_PAYLOADS = 256
_KNOWN_BYTES = 64
_SECRETS = ("start-ok", "secure-ok", "update-secret")
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
        attribute: the name in the method's type, "" when reserved.
        domain: the data type.
    """

    name: str
    attribute: str
    domain: str


class Attribute(NamedTuple):
    """An attribute of the type of a method, as `msgspec.defstruct` takes it."""

    name: str
    annotation: Any
    default: Any


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
        kind: the type of the method.
        types: the data types of fields, by name.

    Attributes:
        constant: the payload of a method without a field that has a value; None for others.
        repeats: whether many peers send the same payload, without anything that is secret.

    Raises:
        ValueError: the type, which another version has made, lacks an attribute.
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
        kind: type[Method],
        types: Mapping[str, Domain],
    ) -> None:
        # The first version that has a method makes its type; later ones use its attributes only.
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
        self.type = kind
        self.head = class_id.to_bytes(2) + method_id.to_bytes(2)
        self._runs = tuple(_runs(fields, types))
        # What decodes a run, None for bits, and the attribute of a field that has one.
        self._reads = tuple(
            (run, None if domain is None else domain.read, run[0].attribute)
            for run, domain in self._runs
        )
        valued = any(field.attribute for field in fields)
        self.constant = None if valued else self.encode(kind())
        owner, _, own = name.partition(".")
        self.repeats = owner in ("connection", "channel") and own not in _SECRETS

    def __repr__(self) -> str:
        return f"<{self.name} {self.class_id}.{self.method_id}>"

    def encode(self, method: Method) -> bytes:
        """Return the payload of a method frame.

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
        """Decode a method frame's payload, which begins with the ids of this method.

        Raises:
            ProtocolError: 502 for fields that do not fill the frame exactly, 501 for bad text.
        """
        offset = _HEAD
        values: dict[str, Any] = {}
        for fields, read, attribute in self._reads:
            try:
                if read is None:
                    offset = _unpack_bits(payload, offset, fields, values)
                    continue
                value, offset = read(payload, offset)
            except ProtocolError as error:
                raise self._error(error, fields[0]) from None
            if attribute:
                values[attribute] = value
        # The frame has a size of its own: bytes that no field explains are a fault of the peer.
        if offset != len(payload):
            text = f"{self.name}: {len(payload) - offset} octets of garbage after the last field"
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
        for index, field in enumerate(fields):
            if field.attribute:
                value = getattr(method, field.attribute)
                if value not in (False, True):
                    raise TypeError(f"{self.name}: {field.name}: must be a bool, not {value!r}")
                octets |= int(value) << index
        # AMQP 0-9-1 4.2.5.2: from the low bit of each octet, and so little-endian as a number.
        return octets.to_bytes((len(fields) + 7) // 8, "little")


def _unpack_bits(
    payload: bytes, offset: int, fields: tuple[Field, ...], values: dict[str, Any]
) -> int:
    end = offset + (len(fields) + 7) // 8
    if end > len(payload):
        raise overrun()
    octets = int.from_bytes(payload[offset:end], "little")
    for index, field in enumerate(fields):
        if field.attribute:
            values[field.attribute] = bool(octets >> index & 1)
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
        module: where the types of methods are found that no version before has.

    Attributes:
        known: payloads that were decoded before, with their methods: see `decode`.

    Raises:
        ValueError: a table that cannot be read.
    """

    def __init__(
        self,
        version: str,
        *layers: ProtocolSpec | str,
        types: Mapping[str, Domain] = DOMAINS,
        module: str = "harebell.wire.v09.methods",
    ) -> None:
        self.version = version
        self._types = types
        self._module = module
        self._by_name: dict[str, MethodSpec] = {}
        for layer in layers:
            if isinstance(layer, ProtocolSpec):
                self._by_name |= {spec.name: spec for spec in layer.methods}
            else:
                self._lay(layer)
        specs = self._by_name.values()
        self._classes = {spec.class_id: spec.name.partition(".")[0] for spec in specs}
        self._by_head = {spec.head: spec for spec in specs}
        self._by_type = {spec.type: spec for spec in specs}
        self.known: dict[bytes, Method] = {}
        # A layer could number a method like one below that it does not remove.
        if len(self._by_head) != len(self._by_name):
            raise ValueError(f"the tables of {version} give one number to two methods")

    def _lay(self, table: str) -> None:
        """Add, replace and remove what a table says."""
        for entry in table_lines(table):
            if entry.line.startswith(REMOVE):
                for name in entry.line.removeprefix(REMOVE).split():
                    self._remove(f"{entry.class_name}.{name}" if entry.class_name else f"{name}.")
            else:
                spec = self._read_method(entry)
                self._by_name[spec.name] = spec

    def _read_method(self, entry: Entry) -> MethodSpec:
        head, _, tail = entry.line.partition(":")
        own, number, senders, *rest = head.split()
        name = f"{entry.class_name}.{own}"
        has_content = rest[:1] == ["+content"]
        rest = rest[has_content:]
        responses: tuple[str, ...] = ()
        if rest[:1] == ["->"]:
            responses = tuple(f"{entry.class_name}.{reply}" for reply in rest[1:])
        elif rest:
            raise ValueError(f"{name}: cannot read {' '.join(rest)!r}")
        read = list(_read_fields(tail, self._types))
        kind = METHODS.get(name) or _type_of(
            name,
            [attribute for _, attribute in read if attribute],
            entry.purpose,
            self._module,
        )
        fields = tuple(field for field, _ in read if field)
        return MethodSpec(
            name,
            entry.class_id,
            int(number),
            senders,
            responses,
            has_content,
            fields,
            kind,
            self._types,
        )

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
        """All methods, in order of class and method id."""
        return tuple(self._by_head[head] for head in sorted(self._by_head))

    def encode(self, method: Method) -> bytes:
        """Return the payload of a method frame.

        Raises:
            ValueError: a value does not fit its field; the text names method and field.
            TypeError: a value of a wrong type, or a method that this version does not have.
        """
        spec = self.spec_of(method)
        return spec.encode(method) if spec.constant is None else spec.constant

    def decode(self, payload: bytes) -> Method:
        """Decode a method frame's payload.

        Methods that open and close connections and channels are the same objects for the same
        payloads, as clients of one kind send the same; handlers change no method of these classes.

        Raises:
            ProtocolError: 502 for fields that do not fit, 501 for text that is no UTF-8, and
                as `method` for a method that this version does not have.
        """
        known = self.known.get(payload)
        if known is not None:
            return known
        spec = self._by_head.get(payload[:_HEAD])
        # One look-up for a known method; which error it is matters only for others.
        if spec is None:
            if len(payload) < _HEAD:
                text = f"a method frame of {len(payload)} octets has no class and method id"
                raise ProtocolError(502, text)
            spec = self.method(int.from_bytes(payload[:2]), int.from_bytes(payload[2:_HEAD]))
        method = spec.decode(payload)
        if spec.repeats and len(payload) <= _KNOWN_BYTES:
            if len(self.known) >= _KNOWN_PAYLOADS:
                self.known.clear()
            self.known[payload] = method
        return method

    def method(self, class_id: int, method_id: int) -> MethodSpec:
        """Return a method by its numbers.

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

    def headed(self, head: bytes) -> MethodSpec:
        """Return a method by its numbers as the first four octets of a payload have them.

        Raises:
            ProtocolError: as `method`.
        """
        spec = self._by_head.get(head)
        if spec is not None:
            return spec
        return self.method(int.from_bytes(head[:2]), int.from_bytes(head[2:]))

    def named(self, name: str) -> MethodSpec:
        """Return a method by its name, for example "queue.declare"; KeyError without one."""
        return self._by_name[name]

    def knows(self, method: Method) -> bool:
        """True if this version has the method."""
        return type(method) in self._by_type

    def spec_of(self, method: Method) -> MethodSpec:
        """Return the specification of a method; TypeError if this version does not have it."""
        spec = self._by_type.get(type(method))
        if spec is None:
            raise TypeError(f"AMQP {self.version} has no method {method!r}")
        return spec


def _read_fields(
    text: str, types: Mapping[str, Domain]
) -> Iterator[tuple[Field | None, Attribute | None]]:
    """Yield each name of a list of fields as what is on the wire, and as what is in the type."""
    for group in text.split(","):
        kind, *names = group.split() or [BIT]
        domain = kind.removesuffix("*")
        if domain != BIT and domain not in types:
            known = ", ".join((BIT, *types))
            raise ValueError(f"unknown data type {domain!r} in a table; there are {known}")
        for each in names:
            name, _, default = each.partition("=")
            bare = name.removeprefix("_")
            attribute = _ATTRIBUTES.get(bare, bare.replace("-", "_"))
            field = Field("_", RESERVED, domain) if bare != name else Field(bare, attribute, domain)
            yield (
                None if domain != kind else field,
                _attribute(attribute, types.get(domain), default) if bare else None,
            )


def _attribute(name: str, domain: Domain | None, default: str) -> Attribute:
    if domain is None:
        return Attribute(name, bool, bool(default))
    if not default:
        return Attribute(name, domain.annotation, domain.zero)
    return Attribute(name, domain.annotation, type(domain.zero)(default))


def _type_of(name: str, attributes: list[Attribute], purpose: str, module: str) -> type[Method]:
    """Make the type of a method: `QueueDeclareOk` for queue.declare-ok."""
    # The ticket, first on the wire, is last: callers give the other attributes by position.
    attributes.sort(key=lambda attribute: attribute.name == "ticket")
    struct = msgspec.defstruct(
        "".join([word.capitalize() for word in name.replace(".", "-").split("-")]),
        attributes,
        bases=(Method,),
        namespace={"NAME": name, "__doc__": purpose},
        module=module,
    )
    kind = METHODS[name] = cast(type[Method], struct)
    return kind


def own_types(module: str, *versions: ProtocolSpec) -> dict[str, type[Method]]:
    """Return the types of the versions' methods that belong in a module, by name."""
    kinds = [spec.type for version in versions for spec in version.methods]
    return {kind.__name__: kind for kind in kinds if kind.__module__ == module}
