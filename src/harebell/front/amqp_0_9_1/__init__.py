"""The server's side of the 0-9-1 family: one connection per peer, one file per AMQP class."""

from __future__ import annotations

# The compiled channel needs the layout of the connection, so the connection is imported first.
from harebell.front.amqp_0_9_1.connection import Connection

__all__ = ["Connection"]
