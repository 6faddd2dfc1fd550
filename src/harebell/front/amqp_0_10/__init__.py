"""AMQP 0-10: connections, sessions, and one file per class of commands."""

from __future__ import annotations

# The compiled session needs the layout of the connection, so the connection is imported first.
from harebell.front.amqp_0_10.connection import Connection

__all__ = ["Connection"]
