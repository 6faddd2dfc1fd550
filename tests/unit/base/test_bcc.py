"""Messages whose blind keys the queues are not shown."""

from __future__ import annotations

from harebell.base.bcc import BccMessage, hidden, revealed, whole
from harebell.base.message import FAMILY_09, FAMILY_09_BCC, Message, Properties
from tests.unit.model.things import message

SEEN, WHOLE = Properties(b"seen"), Properties(b"whole", 2)


def test_queues_see_the_message_without_and_who_asks_gets_it_whole() -> None:
    blind = BccMessage(Message("e", "k", WHOLE, b"body"), SEEN, WHOLE)
    assert (blind.exchange, blind.routing_key, blind.raw, blind.body) == (
        "e",
        "k",
        b"seen",
        b"body",
    )
    found = revealed(blind)
    assert (found.exchange, found.routing_key, found.raw, found.body) == (
        "e",
        "k",
        b"whole",
        b"body",
    )
    assert found.delivery_mode == 2


def test_a_message_of_class_basic_keeps_its_keys_to_itself_and_gives_them_back() -> None:
    given = message(b"body")
    given.due, given.origin = 5, 6
    kept = hidden(given)
    assert kept.family == FAMILY_09_BCC
    for found in (whole(kept), revealed(kept)):
        assert (found.family, found.raw, found.body) == (FAMILY_09, given.raw, b"body")
        assert (found.due, found.origin) == (5, 6)
    assert whole(given) is given


def test_any_other_message_is_copied_as_it_is() -> None:
    given = message(b"body")
    found = revealed(given)
    assert found is not given
    assert (found.raw, found.body) == (given.raw, b"body")
