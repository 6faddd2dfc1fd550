"""The structs of a message's header segment in final 0-10, and its conversion.

`harebell.wire.convert.final` converts each property from and to class basic.
"""

from __future__ import annotations

from typing import TypeVar

from harebell.base.message import FAMILY_010, Properties
from harebell.base.values import Typed
from harebell.wire.convert.final import from_basic, to_basic
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Composite
from harebell.wire.v010.structs import DeliveryProperties, MessageProperties

__all__ = ["decode_final", "encode_final", "from_basic", "to_basic"]

_Struct = TypeVar("_Struct", bound=Composite)


def decode_final(raw: bytes) -> tuple[DeliveryProperties, MessageProperties]:
    """Decode both structs of a header segment; a missing one is empty.

    Raises:
        ProtocolError: it is malformed.
    """
    structs = AMQP_0_10.decode_header(raw)
    return _first(structs, DeliveryProperties), _first(structs, MessageProperties)


def _first(structs: list[Composite | Typed], kind: type[_Struct]) -> _Struct:
    return next((each for each in structs if isinstance(each, kind)), kind())


def encode_final(delivery: DeliveryProperties, message: MessageProperties) -> Properties:
    """Encode a header segment, and return the fields that the broker needs.

    Raises:
        ValueError, TypeError: a value does not fit; the text names it.
    """
    raw = AMQP_0_10.encode_struct(delivery) + AMQP_0_10.encode_struct(message)
    return Properties(
        raw,
        delivery.delivery_mode or 0,
        -1 if delivery.priority is None else delivery.priority,
        bool(message.application_headers),
        family=FAMILY_010,
    )
