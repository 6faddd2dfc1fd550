"""The refusals that several places give."""

from __future__ import annotations

from harebell.base.errors import ErrorKind
from harebell.model.resource import missing, precondition, refused, rendered


def test_things_are_named_with_their_vhost() -> None:
    assert rendered("queue", "orders", "/") == "queue 'orders' in vhost '/'"


def test_refusals_have_their_kinds() -> None:
    assert missing("exchange", "e", "/").kind is ErrorKind.NOT_FOUND
    assert missing("exchange", "e", "/").text == "no exchange 'e' in vhost '/'"
    assert precondition("x").kind is ErrorKind.PRECONDITION_FAILED
    assert refused("x").kind is ErrorKind.ACCESS_REFUSED
