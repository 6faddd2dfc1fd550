"""Names that no client may declare or delete, at whatever door."""

from __future__ import annotations

from harebell.base.limits import NAME_BYTES
from harebell.model.exchange import KINDS
from harebell.model.resource import RESERVED_PREFIX, precondition, refused, rendered


def check_exchange_type(kind: str) -> None:
    """Refuse an unknown exchange type."""
    if kind not in KINDS:
        raise precondition(f"unknown exchange type '{kind}'")


def check_exchange_deletion(name: str, vhost: str) -> None:
    """Refuse to delete a predeclared exchange."""
    if name.startswith(RESERVED_PREFIX):
        raise refused(f"deletion of system {rendered('exchange', name, vhost)} not allowed")


def check_exchange_name(name: str) -> None:
    """Refuse a name that no new exchange may have."""
    if name.startswith(RESERVED_PREFIX):
        raise refused(f"exchange name '{name}' contains reserved prefix 'amq.*'")


def check_queue_name(name: str) -> None:
    """Refuse a queue name that clients may not use in declarations."""
    if name.startswith(RESERVED_PREFIX):
        raise refused(f"queue name '{name}' contains reserved prefix 'amq.*'")


def check_length(what: str, name: str) -> None:
    """Refuse a name or key that AMQP cannot carry."""
    size = len(name.encode(errors="surrogateescape"))
    if size > NAME_BYTES:
        raise precondition(
            f"the {what} has {size} bytes, at most {NAME_BYTES} are allowed: shorten it"
        )
