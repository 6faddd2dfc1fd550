"""What the commands of a session work on; the session layer is below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import Properties
from harebell.front.session010.errors import NOT_IMPLEMENTED, ExecutionError
from harebell.front.session010.layer import SessionLayer

if TYPE_CHECKING:
    from harebell.front.session010.connection import Connection


class Session(SessionLayer):
    """One session.

    Args:
        connection, number, name: as for `SessionLayer`.
    """

    __slots__ = ()

    def __init__(self, connection: Connection, number: int, name: bytes) -> None:
        super().__init__(connection, number, name)

    def publish(
        self, flags: int, destination: str, routing_key: str, properties: Properties, body: bytes
    ) -> int:
        """Carry out a message.transfer."""
        raise ExecutionError(NOT_IMPLEMENTED, "message.transfer is not implemented")
