"""The table of AMQP 0-10: its format, and the typed values and the codec made from it.

A table has a line per class and, indented, one per struct, control or command; deeper indentation
continues a line, and its end in quotation marks says what it is for:

    queue 8                                     class and class code
      struct queue-query-result 1 4 2 : ...     name, code, octets of its size, of its packing flags
      declare   1  C  : str8 queue! ...         a command, or in classes 1 and 2 a control
      query     4  C  => queue-query-result : str8 queue!
      |         |  |  |                         |
      name   code  |  what comes of it          fields: a type, then the fields of that type in a
                   |  -> its replies            row; ! marks those that are always sent
                   |  => the struct of its execution.result
                   |  +structs that its header segment may hold
                   C the client sends it, S the server, CS both

On the wire (AMQP 0-10 4.3): controls and commands are class, code, for commands the session header,
then packing flags and the fields whose flag is set. Structs have their size and code in front. The
flag of the first field is the lowest bit of the first octet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec

from harebell.base.errors import ProtocolError
from harebell.base.values import Typed
from harebell.wire.table_lines import table_lines
from harebell.wire.v010 import types
from harebell.wire.v010.composites import Command, Composite, Control
from harebell.wire.v010.domains import DOMAINS, Domain
from harebell.wire.v010.types import Malformed

FRAMING_ERROR = 501
COMMAND_INVALID = 503
ILLEGAL_ARGUMENT = 531

_CONTROL_CLASSES = ("connection", "session")
_MODULES = {Composite: "structs", Control: "controls", Command: "commands"}
"""Where the types of each base are found."""
_HEAD = 2
_SESSION_HEADER = 2
_SYNC = 1


class Field(NamedTuple):
    """A field of a struct, control or command.

    Args:
        name: the name in the specification.
        attribute: the name in its Python class.
        domain: the data type, None for a bit.
        kind: the name of the data type.
        required: whether it is always sent.
    """

    name: str
    attribute: str
    domain: Domain | None
    kind: str
    required: bool

    def typed(self) -> tuple[str, Any, Any]:
        """Return name, type and default of its attribute."""
        if self.domain is None:
            return self.attribute, bool, False
        annotation = self.domain.annotation
        # An empty map, array or set is not sent, so it needs no None beside it.
        if self.required or self.domain.empty:
            return self.attribute, annotation, self.domain.zero
        return self.attribute, annotation | None, None


class CompositeSpec:
    """The specification of one struct, control or command.

    Args:
        name: for example "queue.declare".
        code: class code and own code in two octets; -1 for a struct without one.
        size: octets of the size before a struct.
        pack: octets of the packing flags.
        fields: in order.
        base: of its type.
        purpose: the docstring of its type.
        senders: "C", "S" or "CS".
        replies: names of the controls or commands that reply to it.
        result: the struct in its execution.result.
        header: the structs that its header segment may contain, None if it has no content.
    """

    def __init__(
        self,
        name: str,
        code: int,
        size: int,
        pack: int,
        fields: tuple[Field, ...],
        base: type[Composite],
        purpose: str,
        *,
        senders: str = "",
        replies: tuple[str, ...] = (),
        result: str = "",
        header: tuple[str, ...] | None = None,
    ) -> None:
        self.name = name
        self.code = code
        self.size = size
        self.pack = pack
        self.fields = fields
        self.from_client = "C" in senders
        self.from_server = "S" in senders
        self.replies = replies
        self.result = result
        self.header = header
        self.type = _type_of(name, base, fields, purpose)

    def __repr__(self) -> str:
        return f"<{self.name} {self.code:#06x}>"

    @property
    def class_code(self) -> int:
        """Code of its class."""
        return self.code >> 8

    @property
    def own_code(self) -> int:
        """Its code within the class."""
        return self.code & 0xFF

    def write(self, value: Composite) -> bytes:
        """Append packing flags and fields.

        Raises:
            ValueError, TypeError: a value does not fit its field; the text names both.
        """
        flags = 0
        out = bytearray()
        for index, field in enumerate(self.fields):
            item = getattr(value, field.attribute)
            # AMQP 0-10 4.3: the packing flag of a bit is its value, and no byte follows.
            if field.domain is None:
                flags |= bool(item) << index
                continue
            if not field.required and (item is None or item in field.domain.empty):
                continue
            flags |= 1 << index
            try:
                out += field.domain.write(item, field.name)
            except (ValueError, TypeError) as error:
                raise type(error)(f"{self.name}: {error}") from None
        return flags.to_bytes(self.pack, "little") + bytes(out)

    def read(self, data: bytes, offset: int, end: int) -> Composite:
        """Parse a value from its packing flags to its end.

        Raises:
            Malformed: it is truncated, too long, or a value does not fit its field.
        """
        start = offset + self.pack
        if start > end:
            raise Malformed(f"{self.name}: its packing flags are cut off")
        flags = int.from_bytes(data[offset:start], "little")
        if flags >> len(self.fields):
            raise Malformed(f"{self.name}: packing flags {flags:#x} for {len(self.fields)} fields")
        offset = start
        values: dict[str, Any] = {}
        for index, field in enumerate(self.fields):
            # A struct without packing flags has all its fields.
            present = flags >> index & 1 if self.pack else True
            if field.domain is None:
                values[field.attribute] = bool(present)
            elif present:
                try:
                    values[field.attribute], offset = field.domain.read(data, offset, end)
                except Malformed as malformed:
                    raise Malformed(f"{self.name}: field '{field.name}': {malformed}") from None
        if offset != end:
            raise Malformed(f"{self.name}: {end - offset} octets after the last field")
        return self.type(**values)


class Content(NamedTuple):
    """A command with its content.

    Args:
        sync: whether the peer requests its completion at once.
        command: with its arguments.
    """

    sync: bool
    command: Command


class ProtocolSpec:
    """All entries of a table, and the codec for them.

    Args:
        table: see above.

    Raises:
        ValueError: the table is invalid.
    """

    def __init__(self, table: str) -> None:
        self.classes: dict[int, str] = {}
        self.structs: dict[str, CompositeSpec] = {}
        self.controls: dict[str, CompositeSpec] = {}
        self.commands: dict[str, CompositeSpec] = {}
        for name, code, line, purpose in table_lines(table):
            self.classes[code] = name
            self._take(name, code, line, purpose)
        self._by_code = {
            spec.code: spec for spec in (*self.controls.values(), *self.commands.values())
        }
        self._struct_codes = {s.code: s for s in self.structs.values() if s.code >= 0}
        self._by_type = {
            spec.type: spec
            for group in (self.structs, self.controls, self.commands)
            for spec in group.values()
        }

    def _take(self, class_name: str, class_code: int, line: str, purpose: str) -> None:
        head, _, tail = line.partition(" : ")
        words = head.split()
        fields = tuple(self._fields(tail))
        if words[0] == "struct":
            name = f"{class_name}.{words[1]}"
            code = -1 if words[2] == "-" else class_code << 8 | int(words[2])
            size, pack = int(words[3]), int(words[4])
            self.structs[name] = CompositeSpec(name, code, size, pack, fields, Composite, purpose)
            return
        name, own, senders, *rest = words
        # Their numbers are disjoint, as the classes are: one dictionary finds both by code.
        is_control = class_name in _CONTROL_CLASSES
        spec = CompositeSpec(
            f"{class_name}.{name}",
            class_code << 8 | int(own),
            0,
            2,
            fields,
            Control if is_control else Command,
            purpose,
            senders=senders,
            **_outcome(class_name, rest),
        )
        group = self.controls if is_control else self.commands
        group[spec.name] = spec

    def _fields(self, text: str) -> Iterator[Field]:
        for part in text.split(","):
            kind, *names = part.split() or ["bit"]
            for name in names:
                bare = name.removesuffix("!")
                attribute = bare.replace("-", "_")
                if attribute == "global":
                    attribute = "global_"
                yield Field(bare, attribute, self._domain(kind), kind, name != bare)

    def _domain(self, kind: str) -> Domain | None:
        if kind == "bit":
            return None
        if kind == "struct32":
            return Domain(self.read_struct32, self._write_struct32, Any, None)
        if kind in self.structs:
            return self._struct_domain(self.structs[kind])
        domain = DOMAINS.get(kind)
        if domain is None:
            raise ValueError(f"unknown data type {kind!r} in a table; there are {list(DOMAINS)}")
        return domain

    @staticmethod
    def _struct_domain(spec: CompositeSpec) -> Domain:
        def read(data: bytes, offset: int, end: int) -> tuple[Any, int]:
            start, after = _struct_extent(spec, data, offset, end)
            return spec.read(data, start, after), after

        def write(value: Any, key: str) -> bytes:
            if type(value) is not spec.type:
                raise TypeError(f"{key!r}: must be a {spec.type.__name__}, not {value!r}")
            code = b"" if spec.code < 0 else spec.code.to_bytes(2)
            return types.sized(spec.size, code + spec.write(value), key)

        return Domain(read, write, spec.type, msgspec.field(default_factory=spec.type))

    # --- writing --------------------------------------------------------------------------------

    def encode(self, value: Control | Command, sync: bool = False) -> bytes:
        """Return the payload of a control's or command's segment.

        Raises:
            ValueError, TypeError: a value does not fit its field.
        """
        spec = self.spec_of(value)
        head = spec.code.to_bytes(_HEAD)
        if isinstance(value, Command):
            head += b"\1\1" if sync else b"\1\0"
        return head + spec.write(value)

    def encode_struct(self, value: Composite) -> bytes:
        """Return a struct for a header segment: size, code, flags, fields."""
        return self._write_struct32(value, "struct")

    def _write_struct32(self, value: Any, key: str) -> bytes:
        # A struct that was not decoded, with its code in the data.
        if isinstance(value, Typed):
            return types.sized(4, value.data, key)
        spec = self._by_type.get(type(value))
        if spec is None or spec.code < 0:
            raise TypeError(f"{key!r}: {value!r} is no struct with a code")
        return types.sized(4, spec.code.to_bytes(2) + spec.write(value), key)

    def struct_array(self, values: list[Any]) -> types.Array:
        """Return structs as the array for fields such as `in-doubt`."""
        return types.Array(
            types.STRUCT32,
            [Typed(types.STRUCT32, self.encode_struct(value)[4:]) for value in values],
        )

    # --- reading --------------------------------------------------------------------------------

    def decode_control(self, payload: bytes) -> Control:
        """Decode the control in a segment.

        Raises:
            ProtocolError: 501, which closes the connection.
        """
        spec = self._by_code.get(int.from_bytes(payload[:_HEAD]))
        if len(payload) < _HEAD or spec is None or spec.name not in self.controls:
            raise ProtocolError(FRAMING_ERROR, f"unknown control {payload[:_HEAD].hex()}")
        try:
            return cast(Control, spec.read(payload, _HEAD, len(payload)))
        except Malformed as malformed:
            raise ProtocolError(
                FRAMING_ERROR, str(malformed), spec.class_code, spec.own_code
            ) from None

    def decode_command(self, payload: bytes) -> Content:
        """Decode the command in a segment; return it and its sync flag.

        Raises:
            ProtocolError: 503 for an unknown one, 531 for fields that do not fit; both end the
                session, not the connection. 501 if even the session header is missing.
        """
        offset = _HEAD + _SESSION_HEADER
        # The session header is a struct of one bit: its size in flags, 1, then the flags.
        if len(payload) < offset or payload[_HEAD] != 1 or payload[_HEAD + 1] > _SYNC:
            raise ProtocolError(FRAMING_ERROR, "a command has no session header")
        class_code, own = payload[0], payload[1]
        spec = self._by_code.get(class_code << 8 | own)
        if spec is None or spec.name not in self.commands:
            name = self.classes.get(class_code)
            what = f"unknown class {class_code}" if name is None else f"unknown command {own}"
            text = what if name is None else f"{what} in class {name}"
            raise ProtocolError(COMMAND_INVALID, text, class_code, own, hard=False)
        try:
            command = spec.read(payload, offset, len(payload))
        except Malformed as malformed:
            text = str(malformed)
            raise ProtocolError(ILLEGAL_ARGUMENT, text, class_code, own, hard=False) from None
        return Content(payload[_HEAD + 1] == _SYNC, cast(Command, command))

    def decode_header(self, raw: bytes) -> list[Composite | Typed]:
        """Decode the structs of a header segment; unknown structs stay encoded.

        Raises:
            ProtocolError: 531.
        """
        result: list[Composite | Typed] = []
        offset = 0
        try:
            while offset < len(raw):
                value, offset = self.read_struct32(raw, offset, len(raw))
                result.append(value)
        except Malformed as malformed:
            text = f"message header: {malformed}"
            raise ProtocolError(ILLEGAL_ARGUMENT, text, 4, 1, hard=False) from None
        return result

    def read_struct32(self, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        """Decode a struct with its size and code; return it and its end."""
        start, after = types.extent(data, types.STRUCT32, offset, end)
        if after - start < _HEAD:
            raise Malformed("a struct is too short for its code")
        spec = self._struct_codes.get(int.from_bytes(data[start : start + _HEAD]))
        # Of another application of the protocol: it is passed on as it came.
        if spec is None:
            return Typed(types.STRUCT32, data[start:after]), after
        return spec.read(data, start + _HEAD, after), after

    # --- looking up -----------------------------------------------------------------------------

    def spec_of(self, value: Composite | type[Composite]) -> CompositeSpec:
        """Return the table's entry for a value or its class; KeyError for others."""
        return self._by_type[value if isinstance(value, type) else type(value)]


def _struct_extent(spec: CompositeSpec, data: bytes, offset: int, end: int) -> tuple[int, int]:
    """Return where the flags of a struct in a field begin, and where it ends.

    The first print of 0-10 gave `dtx.xid` a size of two octets and no code, the errata four and
    one. No branch name has 64 KiB, so the first two octets distinguish them.
    """
    size = spec.size
    coded = spec.code >= 0
    if coded and data[offset : offset + 2] != b"\0\0":
        size, coded = 2, False
    start = offset + size
    if start > end:
        raise types.cut_off(size, end - offset)
    after = start + int.from_bytes(data[offset:start])
    if after > end:
        raise types.cut_off(after - start, end - start)
    if coded:
        if int.from_bytes(data[start : start + _HEAD]) != spec.code:
            raise Malformed(f"{data[start : start + _HEAD].hex()} is not the code of {spec.name}")
        start += _HEAD
    return start, after


def _type_of(
    name: str, base: type[Composite], fields: tuple[Field, ...], purpose: str
) -> type[Composite]:
    """Make the class of a struct, control or command: `QueueDeclare` for queue.declare."""
    class_name, _, own = name.partition(".")
    # A struct has its class in its own name where it needs one: message.message-properties.
    words = own.split("-") if base is Composite else [class_name, *own.split("-")]
    made = msgspec.defstruct(
        "".join([word.capitalize() for word in words]),
        [field.typed() for field in fields],
        bases=(base,),
        namespace={"NAME": name, "__doc__": purpose},
        module=f"harebell.wire.v010.{_MODULES[base]}",
    )
    return cast(type[Composite], made)


def _outcome(class_name: str, words: list[str]) -> dict[str, Any]:
    """Parse the part between senders and fields."""
    if not words:
        return {}
    if words[0] == "->":
        return {"replies": tuple(f"{class_name}.{word}" for word in words[1:])}
    if words[0] == "=>":
        return {"result": f"{class_name}.{words[1]}"}
    if words[0].startswith("+"):
        names = (words[0][1:], *words[1:])
        return {"header": tuple(f"{class_name}.{name}" for name in names)}
    raise ValueError(f"{class_name}: cannot read {' '.join(words)!r}")
