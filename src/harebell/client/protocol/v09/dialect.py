"""Differences between the versions of AMQP that the client speaks over the frames of 0-9.

    version  header      connection.start says   confirms, nack, exchange.bind   field tables
    0-8      1 1 8 0     8-0                     no                              S I D T F
    0-9      1 1 0 9     0-9                     yes, where the broker is one    S I D T F
    0-9-1    0 0 9 1     0-9                     that has them                   all of RabbitMQ's
    0-10t    1 1 99 0    0-10                    every command is completed      its own

Final 0-10 has frames of its own; see `harebell.client.protocol.v010.core`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from harebell.client.errors import UnsupportedByVersion
from harebell.wire.v09 import methods as m
from harebell.wire.v09.spec import ProtocolSpec
from harebell.wire.v09.typed_fields import FieldDialect as Letters
from harebell.wire.v09.typed_fields import encode_typed

_TABLES = {
    "0-8": ("harebell.wire.v09.amqp_0_8", "AMQP_0_8"),
    "0-9": ("harebell.wire.v09.amqp_0_9", "AMQP_0_9"),
    "0-9-1": ("harebell.wire.v09.amqp_0_9_1", "AMQP_0_9_1"),
    "0-10t": ("harebell.wire.v09.amqp_0_10_transitional", "AMQP_0_10_TRANSITIONAL"),
}
_BEGINNINGS = {
    "0-8": (b"AMQP\x01\x01\x08\x00", (8, 0)),
    "0-9": (b"AMQP\x01\x01\x00\x09", (0, 9)),
    "0-9-1": (b"AMQP\x00\x00\x09\x01", (0, 9)),
    # Its own number is also that of final 0-10. This later number is unambiguous.
    "0-10t": (b"AMQP\x01\x01\x63\x00", (0, 10)),
}
TRANSITIONAL = "0-10t"
_NO_ARGUMENTS = bytes(4)


@dataclass(frozen=True, slots=True)
class ClientDialect:
    """One of these versions.

    Ticket 0 is the default one, so the client requests no ticket.

    Args:
        version: "0-8", "0-9", "0-9-1" or "0-10t".
        header: the protocol header.
        announced: major and minor version in connection.start.
        spec: methods, and their codec.
        capabilities: whether clients usually send capabilities.
        recovers: whether basic.recover has a reply.
    """

    version: str
    header: bytes
    announced: tuple[int, int]
    spec: ProtocolSpec
    capabilities: bool
    recovers: bool

    def has(self, kind: type[m.Method]) -> bool:
        """True if the version has a method."""
        try:
            self.spec.named(kind.NAME)
        except KeyError:
            return False
        return True

    @property
    def confirms(self) -> bool:
        """Whether publishes can be confirmed."""
        return self.version == TRANSITIONAL or self.has(m.ConfirmSelect)

    def introduced(self, properties: dict[str, Any]) -> Any:
        """Return the client properties for connection.start-ok.

        Transitional 0-10 cannot say which types of table values a peer reads: brokers send those
        that they have received, so the properties contain one of each type.
        """
        if self.version != TRANSITIONAL:
            return properties
        return encode_typed({**properties, "types": [True, 0.5]}, Letters.LETTERS)

    def encode(self, method: m.Method) -> bytes:
        """Return the payload of a method frame.

        Raises:
            UnsupportedByVersion: the version does not have the method.
            ValueError, TypeError: a value does not fit its field.
        """
        if not self.has(type(method)):
            raise UnsupportedByVersion(self.version, method.NAME)
        payload = self.spec.encode(method)
        if self.version == "0-8" and isinstance(method, m.BasicConsume) and not method.arguments:
            # The published layout ends before the arguments, and its brokers require that.
            return payload.removesuffix(_NO_ARGUMENTS)
        return payload


@cache
def dialect_of(version: str) -> ClientDialect:
    """Return a version by its name."""
    module, name = _TABLES[version]
    spec: ProtocolSpec = getattr(import_module(module), name)
    header, announced = _BEGINNINGS[version]
    newest = version == "0-9-1"
    recovers = version in ("0-9", "0-9-1")
    return ClientDialect(version, header, announced, spec, capabilities=newest, recovers=recovers)
