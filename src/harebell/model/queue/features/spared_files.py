"""Drop policy: which message a full queue drops if it has messages of the classes file and stream.

    drop-head      7b 3f 2p 5p 1p 4b      b: class basic, f: file, p: packet of class stream
    dropped        ^                      the oldest, unless it is a file or a packet
    dropped                 ^             of adjacent packets the one of the lowest priority

A file is skipped: its publisher is blocked instead (AMQP 0-8, class file: the server must not
discard a file message). This module is used only after a queue got a file or a packet.
"""

from __future__ import annotations

from harebell.base.message import FAMILY_FILE, FAMILY_STREAM, Message
from harebell.model.limits import SPARING_SCAN_MESSAGES
from harebell.model.queue.order.contract import MessageOrder

_NOTHING = -1


def take_victim(order: MessageOrder) -> Message | None:
    """Take the message to drop, and set `order.position`; None if no message may be dropped."""
    # Most messages are of other classes: then no search is needed.
    message = order.peek()
    if message is None or message.family not in (FAMILY_FILE, FAMILY_STREAM):
        return order.take()
    cursors = [0]
    victim: Message | None = None
    victim_position = _NOTHING
    # At a limit of messages the search ends: files in a row must not stop the broker.
    for _ in range(SPARING_SCAN_MESSAGES):
        position = order.next_ready(cursors)
        if position < 0:
            break
        order.pass_by(cursors, position)
        message = order.read(position)
        if message is None or message.family == FAMILY_FILE:
            continue
        if message.family != FAMILY_STREAM:
            # A message of class basic ends a run of packets; it is dropped if there is none before.
            if victim is None:
                victim, victim_position = message, position
            break
        if victim is None or message.priority < victim.priority:
            victim, victim_position = message, position
    if victim is None or not order.take_out(victim_position):
        return None
    order.position = victim_position
    return victim
