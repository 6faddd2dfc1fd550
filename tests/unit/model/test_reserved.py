"""What nobody may name, make or delete."""

from __future__ import annotations

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.model.exchange import KINDS
from harebell.model.reserved import check_exchange_deletion, check_exchange_type, check_queue_name


def test_types_that_there_are_and_names_of_ones_own_are_fine() -> None:
    for kind in KINDS:
        check_exchange_type(kind)
    check_exchange_deletion("orders", "/")
    check_queue_name("amqp")


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: check_exchange_type("Fanout"),
            ErrorKind.PRECONDITION_FAILED,
            "unknown exchange type 'Fanout'",
        ),
        (
            lambda: check_exchange_deletion("amq.x", "v"),
            ErrorKind.ACCESS_REFUSED,
            "deletion of system exchange 'amq.x' in vhost 'v' not allowed",
        ),
        (
            lambda: check_queue_name("amq.x"),
            ErrorKind.ACCESS_REFUSED,
            r"queue name 'amq.x' contains reserved prefix 'amq.*'",
        ),
    ],
)
def test_the_others_are_refused_in_rabbitmqs_words(call, kind, text) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Refusal) as caught:
        call()
    assert (caught.value.kind, str(caught.value)) == (kind, text)
