"""A delivery for which the window of the session is too small: its transfers wait one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.wire.v1.composites import Transfer
from harebell.wire.v1.frames import HEAD, encode_frame

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.sending import SendingLink

_SERIALS = 1 << 32


def send_in_parts(link: SendingLink, number: int, tag: bytes, payload: bytes) -> None:
    """Write the transfers of a delivery to its session, which sends as many as it may.

    Args:
        link: which gets the message.
        number: the delivery-id.
        tag: the delivery-tag.
        payload: the sections of the message.
    """
    session, room = link.session, link.connection.frame_max
    head = Transfer(
        handle=link.handle,
        delivery_id=number % _SERIALS,
        delivery_tag=tag,
        message_format=0,
        settled=link.settles,
        more=True,
    ).encoded()
    between = Transfer(handle=link.handle, more=True).encoded()
    at = 0
    # More than one is needed: the window of the session is open, and was too small.
    while at + (size := room - HEAD - len(head)) < len(payload):
        frame = encode_frame(head + payload[at : at + size], session.number)
        session.send_transfer(link.handle, frame)
        at += size
        head = between
    frame = encode_frame(Transfer(handle=link.handle).encoded() + payload[at:], session.number)
    session.send_transfer(link.handle, frame)
