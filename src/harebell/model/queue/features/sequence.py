"""Sequence numbers of a queue: the argument `qpid.queue_msg_sequence` of Qpid's broker.

Each message gets a header, whose name is the argument's value, with its number. Numbers begin at 1
and rise by one, so a reader sees by a gap that messages were dropped. The number is the position in
the log, and one more: it is as durable as the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from harebell.base.message import FAMILY_FILE, FAMILY_STREAM, Message
from harebell.model.editor import Editor
from harebell.model.queue.arguments import SEQUENCE


class Positions(Protocol):
    """The part of the message order that is used here."""

    def next_position(self, message: Message) -> int:
        """Return the position that the next message gets."""


class QueueSequence:
    """The sequence numbers of one queue.

    Args:
        name: the name of the header.
        order: the message order of the queue, which has one log.
        editor: changes messages.
    """

    def __init__(self, name: str, order: Positions, editor: Editor) -> None:
        self._name = name
        self._order = order
        self._editor = editor

    def numbered(self, message: Message) -> Message:
        """Return a copy of the message that the order appends next, with its number."""
        if message.family in (FAMILY_FILE, FAMILY_STREAM):
            # Files and packets stay what they are: they have no such header.
            return message
        number = self._order.next_position(message) + 1
        numbered = self._editor.with_headers(message, {self._name: number})
        # These belong to the publish, and not to its properties.
        numbered.due = message.due
        numbered.origin = message.origin
        numbered.deliveries = message.deliveries
        return numbered


def sequence_of(
    arguments: Mapping[str, Any], order: Positions, editor: Editor
) -> QueueSequence | None:
    """Return the sequence numbers of a queue with these arguments; None without any."""
    name = arguments.get(SEQUENCE)
    return QueueSequence(name, order, editor) if isinstance(name, str) and name else None
