"""Names of resources in error texts, and refusals that several modules use."""

from __future__ import annotations

from harebell.base.errors import ErrorKind, Refusal

RESERVED_PREFIX = "amq."


def rendered(kind: str, name: str, vhost: str) -> str:
    """Return `queue 'orders' in vhost '/'`, the form of error texts."""
    return f"{kind} '{name}' in vhost '{vhost}'"


def missing(kind: str, name: str, vhost: str) -> Refusal:
    """Return the refusal for a queue or exchange that does not exist."""
    return Refusal(ErrorKind.NOT_FOUND, f"no {rendered(kind, name, vhost)}")


def precondition(text: str) -> Refusal:
    """Return a refusal because the state or an argument does not allow the operation."""
    return Refusal(ErrorKind.PRECONDITION_FAILED, text)


class LimitReached(Refusal):
    """A refusal because there may be no more of something: versions have other errors for that."""


def limit_reached(text: str) -> LimitReached:
    """Return a refusal because there may be no more."""
    return LimitReached(ErrorKind.PRECONDITION_FAILED, text)


def refused(text: str) -> Refusal:
    """Return a refusal because the user may not do this."""
    return Refusal(ErrorKind.ACCESS_REFUSED, text)
