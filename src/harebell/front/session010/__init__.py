"""The front of AMQP 0-10: connections, sessions, and a file per class of commands."""

from harebell.front.session010.connection import Connection

__all__ = ["Connection"]
