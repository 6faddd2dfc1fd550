"""How things are named in error texts, and the refusals that several places give."""

from __future__ import annotations

from harebell.base.errors import ErrorKind, Refusal

RESERVED_PREFIX = "amq."


def rendered(kind: str, name: str, vhost: str) -> str:
    """`queue 'orders' in vhost '/'`, as clients and their users know it."""
    return f"{kind} '{name}' in vhost '{vhost}'"


def missing(kind: str, name: str, vhost: str) -> Refusal:
    """The refusal for a queue or exchange that does not exist."""
    return Refusal(ErrorKind.NOT_FOUND, f"no {rendered(kind, name, vhost)}")


def precondition(text: str) -> Refusal:
    """A refusal because the state or an argument does not allow the operation."""
    return Refusal(ErrorKind.PRECONDITION_FAILED, text)


def refused(text: str) -> Refusal:
    """A refusal because nobody may do this."""
    return Refusal(ErrorKind.ACCESS_REFUSED, text)
