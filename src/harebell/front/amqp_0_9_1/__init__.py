"""The server's side of the 0-9-1 family: one connection per peer, one file per AMQP class."""

from __future__ import annotations

# Compiled, connection and channel refer to each other's layout; the connection has to come first.
from harebell.front.amqp_0_9_1.connection import Connection

__all__ = ["Connection"]
