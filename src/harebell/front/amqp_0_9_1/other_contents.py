"""Write and return contents of other classes than `basic`: file, stream, tunnel, test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.errors import ProtocolError
from harebell.base.limits import FRAME_OVERHEAD_BYTES
from harebell.base.message import FAMILY_09, FAMILY_FILE, FAMILY_STREAM, Message
from harebell.front.convert.plain import plain_list
from harebell.kernels.output import OutBuffer
from harebell.wire.v09.frames import BODY, HEADER, METHOD
from harebell.wire.v09.method import Method
from harebell.wire.v09.methods_older import FileReturn, StreamReturn
from harebell.wire.v09.property_list import FILE, STREAM, PropertyList

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel

_RETURNS = {FAMILY_FILE: (FileReturn, FILE), FAMILY_STREAM: (StreamReturn, STREAM)}


def send_body(
    channel: OpenChannel,
    method: Method,
    listed: PropertyList,
    raw: bytes,
    body: bytes,
    offset: int = 0,
) -> None:
    """Send a method with a content.

    Args:
        channel: where it is sent.
        method: the method before the content.
        listed: the property list of its class.
        raw: the encoded properties.
        body: the whole body, also when less is sent.
        offset: of the first byte that is sent.
    """
    connection = channel.connection
    number, out = channel.number, OutBuffer()
    if connection.profile.plain and listed.family != FAMILY_09:
        raw = plain_list(raw, connection.known)
    out.frame(METHOD, number, connection.spec.encode(method))
    raw = channel.readable(raw, listed.class_id)
    out.frame(HEADER, number, listed.header(len(body) - offset, raw))
    payload_max = connection.frame_max - FRAME_OVERHEAD_BYTES
    for begin in range(offset, len(body), payload_max):
        out.frame(BODY, number, body[begin : begin + payload_max])
    # In one piece: no frame of the channel may come between those of a content (4.2.6).
    channel.write_frames(out.take())


def send_back(channel: OpenChannel, message: Message, code: int) -> bool:
    """Return a file or a packet to its publisher; False for a message of another family.

    Args:
        channel: of the publisher.
        message: the unroutable or undeliverable message.
        code: the reply code of 0-9-1: 312 or 313.
    """
    make_return = _RETURNS.get(message.family)
    if make_return is None:
        return False
    kind, listed = make_return
    errors = channel.connection.profile.errors
    # The code and its name differ between versions; the text is the name without an explanation.
    error = errors.translated(ProtocolError(code, ""))
    name = errors.text(error).partition(" ")[0]
    method = kind(error.code, name, message.exchange, message.routing_key)
    send_body(channel, method, listed, message.raw, message.body)
    return True
