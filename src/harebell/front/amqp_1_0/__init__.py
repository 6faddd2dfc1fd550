"""AMQP 1.0: connections, sessions and links."""

from __future__ import annotations

# The compiled session needs the layout of the connection, so the connection is imported first.
from harebell.front.amqp_1_0.connection import Connection

__all__ = ["Connection"]
