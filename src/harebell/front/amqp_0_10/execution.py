"""Decode a command and dispatch it.

COMMANDS           commands without content       called with session and command
CONTENT_COMMANDS   commands with header and body  called with those, too
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harebell.auth.authority import Undecided
from harebell.base.message import Properties
from harebell.front.amqp_0_10.dispatch import COMMANDS, CONTENT_COMMANDS
from harebell.front.amqp_0_10.errors import (
    COMMAND_INVALID,
    ILLEGAL_ARGUMENT,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    ExecutionError,
)
from harebell.front.amqp_0_10.header import flags_of, read_header
from harebell.kernels.header_structs import NO_BODY
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.commands import MessageTransfer

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.assembly import Assembly
    from harebell.front.amqp_0_10.session import Session

_FLAGS = 4
"""Where the packing flags of a command begin."""
_ACCEPT_MODE = 2
"""The flag of a transfer's accept-mode."""


def take(session: Session, assembly: Assembly) -> None:
    """Execute an assembled command; an error ends the session."""
    data = assembly.command()
    if not session.begin():
        # A replay of a command that was executed before the session was resumed.
        return
    try:
        _carry_out(session, data, assembly)
    except Undecided as undecided:
        repeat = partial(_carry_out, session, data, assembly)
        session.decide(undecided, repeat, *data[:2].ljust(2, b"\0"))
    except Exception as error:
        # The error names class and command; a malformed command may be shorter than both.
        session.caught(error, *data[:2].ljust(2, b"\0"))


def _bodiless(properties: Properties) -> Properties:
    """Return properties which note that there was no body segment."""
    return Properties(
        properties.raw + NO_BODY,
        properties.delivery_mode,
        properties.priority,
        properties.has_headers,
        properties.suspect,
        properties.family,
    )


def _carry_out(session: Session, data: bytes, assembly: Assembly) -> None:
    sync, command = AMQP_0_10.decode_command(data)
    if assembly.too_large:
        limit = session.connection.message_max
        text = f"message size {assembly.size} is larger than configured max size {limit}"
        raise ExecutionError(RESOURCE_LIMIT_EXCEEDED, text)
    header, body = assembly.header(), assembly.body()
    kind = type(command)
    if isinstance(command, MessageTransfer):
        header_flags, key, properties = read_header(header)
        if not assembly.has_body:
            # Deliveries have no body segment either: an empty one is not the same.
            properties = _bodiless(properties)
        flags = header_flags | flags_of(command, sync, bool(data[_FLAGS] & _ACCEPT_MODE))
        session.publish(flags, command.destination or "", key, properties, body)
        return
    content_handler = CONTENT_COMMANDS.get(kind)
    if content_handler is not None:
        content_handler(session, command, header, body)
        return
    spec = AMQP_0_10.spec_of(kind)
    if not spec.from_client:
        raise ExecutionError(COMMAND_INVALID, f"{spec.name} is for servers")
    handler = COMMANDS.get(kind)
    if handler is None:
        raise ExecutionError(NOT_IMPLEMENTED, f"{spec.name} is not implemented")
    if header or body:
        raise ExecutionError(ILLEGAL_ARGUMENT, f"{spec.name} has no content")
    handler(session, command)
