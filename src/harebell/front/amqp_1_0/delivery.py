"""The transfers of a delivery: performative, new header, annotations, and the bare message.

sections      header      message annotations         properties ... footer
published     dropped     kept                        kept, octet for octet
by the broker durable, priority, ttl,                 x-exchange, x-routing-key, and where they
first-acquirer, delivery-count          apply x-stream-offset, x-delivery-count
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import FAMILY_1_0, PERSISTENT, Message
from harebell.wire.v1 import encoding
from harebell.wire.v1.composites import Header, Transfer
from harebell.wire.v1.frames import HEAD, encode_frame
from harebell.wire.v1.sections import (
    HEADER,
    MESSAGE_ANNOTATIONS,
    Sections,
    data_section,
    section,
)
from harebell.wire.v1.values import Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.sending import SendingLink

_SERIALS = 1 << 32
_X_EXCHANGE = Symbol("x-exchange")
_X_KEY = Symbol("x-routing-key")
_X_OFFSET = Symbol("x-stream-offset")
_X_DELIVERIES = Symbol("x-delivery-count")
_X_ACQUIRED = Symbol("x-acquired-count")


def transfers_of(link: SendingLink, number: int, message: Message, redelivered: bool) -> None:
    """Write the transfers of a message to the session of a link.

    Args:
        link: which gets the message.
        number: the delivery-id.
        message: of family 1.0.
        redelivered: whether it may have been delivered before.
    """
    payload = sections_of(message, redelivered, link.connection.broker.clock.steady)
    session = link.session
    # The tag is of no use to the broker: its dispositions come by delivery-id.
    tag = b"" if link.settles else number.to_bytes(8)[4:]
    room = link.connection.frame_max
    first = Transfer(
        handle=link.handle,
        delivery_id=number % _SERIALS,
        delivery_tag=tag,
        message_format=0,
        settled=link.settles,
    )
    head = first.encoded()
    if HEAD + len(head) + len(payload) <= room:
        session.send_transfer(link.handle, encode_frame(head + payload, session.number))
        return
    first.more = True
    at = 0
    performative = first.encoded()
    last = Transfer(handle=link.handle, settled=link.settles).encoded()
    between = Transfer(handle=link.handle, settled=link.settles, more=True).encoded()
    while at < len(payload):
        size = room - HEAD - len(performative)
        part = payload[at : at + size]
        if at + size >= len(payload):
            performative = last
        session.send_transfer(link.handle, encode_frame(performative + part, session.number))
        at += size
        performative = between


def sections_of(message: Message, redelivered: bool, now: int) -> bytes:
    """Return the sections of a message as its receiver gets them.

    Args:
        message: of family 1.0.
        redelivered: whether it may have been delivered before.
        now: milliseconds of the monotonic clock.
    """
    raw = message.raw
    header, annotations, bare = Header(), {}, 0
    at = 0
    while at < len(raw):
        code, _, after = section(raw, at, len(raw))
        if code == HEADER:
            header = Sections(raw).header()
        elif code == MESSAGE_ANNOTATIONS:
            annotations = Sections(raw).message_annotations()
        else:
            break
        at = bare = after
    header.durable = message.delivery_mode == PERSISTENT
    header.first_acquirer = not redelivered and message.deliveries == 0
    header.delivery_count = message.deliveries
    if message.due and header.ttl is not None:
        # What is left of the time (AMQP 1.0 3.2.1).
        header.ttl = max(min(header.ttl, message.due - now), 0)
    added = dict(annotations)
    added[_X_EXCHANGE] = message.exchange
    added[_X_KEY] = message.routing_key
    if message.offset >= 0:
        added[_X_OFFSET] = message.offset
    if message.deliveries > 0:
        added[_X_DELIVERIES] = added[_X_ACQUIRED] = message.deliveries
    body = data_section(message.body) if message.family == FAMILY_1_0 else message.body
    return header.encoded() + _ANNOTATIONS + encoding.encode(added) + raw[bare:] + body


_ANNOTATIONS = bytes((0, 0x53, MESSAGE_ANNOTATIONS))
