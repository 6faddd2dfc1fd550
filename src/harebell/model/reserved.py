"""What nobody may name, make or delete, whatever the permissions: asked before those."""

from __future__ import annotations

from harebell.model.exchange import KINDS
from harebell.model.resource import RESERVED_PREFIX, precondition, refused, rendered


def check_exchange_type(kind: str) -> None:
    """Refuse a type of exchange that there is not."""
    if kind not in KINDS:
        raise precondition(f"unknown exchange type '{kind}'")


def check_exchange_deletion(name: str, vhost: str) -> None:
    """Refuse to delete an exchange of the broker's own."""
    if name.startswith(RESERVED_PREFIX):
        raise refused(f"deletion of system {rendered('exchange', name, vhost)} not allowed")


def check_queue_name(name: str) -> None:
    """Refuse a name that a client may not give to a queue, or declare it by."""
    if name.startswith(RESERVED_PREFIX):
        raise refused(f"queue name '{name}' contains reserved prefix 'amq.*'")
