"""Bind queues and exchanges to exchanges: the permissions."""

from __future__ import annotations

from harebell.auth.permissions import READ, WRITE
from harebell.front.common.channel_like import Principal
from harebell.front.common.permission import EXCHANGE, check, check_topic


def check_ends(caller: Principal, kind: str, destination: str, source: str) -> None:
    """Refuse a binding that the user may not make or undo.

    Args:
        caller: the user and vhost.
        kind: of the destination, QUEUE or EXCHANGE.
        destination: its name; needs write.
        source: the exchange; needs read.

    Raises:
        Refusal: a permission is missing, or one of the exchanges is the default exchange.
    """
    check(caller, WRITE, kind, destination)
    if kind == EXCHANGE:
        caller.vhost.check_not_default(destination)
    caller.vhost.check_not_default(source)
    check(caller, READ, EXCHANGE, source)


def check_binding(caller: Principal, kind: str, destination: str, source: str, key: str) -> None:
    """Refuse a binding that the user may not make or undo, its key included."""
    check_ends(caller, kind, destination, source)
    check_topic(caller, READ, source, key)
