"""The front of AMQP 0-10: connections, sessions, and a file per class of commands."""

from harebell.front.amqp_0_10.connection import Connection

__all__ = ["Connection"]
