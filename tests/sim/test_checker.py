"""The checker finds every kind of broken promise that is planted before it."""

from __future__ import annotations

import pytest

from tests.sim.checker import Checker, Violation


def _with_messages(count: int = 3) -> Checker:
    checker = Checker()
    for number in range(count):
        checker.publishes(number, b"%d:body" % number, 1, ("q",))
    return checker


def test_a_good_run_passes() -> None:
    checker = _with_messages()
    for number in range(3):
        checker.confirms(number)
    item = checker.receives(9, "q", b"0:body", False)
    checker.acks(item)
    checker.closes_cleanly({item})
    checker.ends({("q", 1), ("q", 2)})


def test_a_lost_message_is_found() -> None:
    checker = _with_messages()
    checker.confirms(1)
    with pytest.raises(Violation, match="gone"):
        checker.ends(set())


def test_an_unconfirmed_message_may_be_gone() -> None:
    checker = _with_messages()
    checker.gives_up(1)
    checker.ends(set())


def test_a_message_of_a_deleted_queue_may_be_gone() -> None:
    checker = _with_messages()
    checker.confirms(1)
    checker.queue_deleted("q")
    checker.ends(set())


def test_an_invented_message_is_found() -> None:
    with pytest.raises(Violation, match="never sent"):
        _with_messages().receives(9, "q", b"77:body", False)


def test_a_body_without_a_number_is_found() -> None:
    with pytest.raises(Violation, match="never sent"):
        _with_messages().receives(9, "q", b"", False)


def test_a_changed_body_is_found() -> None:
    with pytest.raises(Violation, match="changed"):
        _with_messages().receives(9, "q", b"0:bodY", False)


def test_a_message_from_the_wrong_queue_is_found() -> None:
    with pytest.raises(Violation, match="not sent to"):
        _with_messages().receives(9, "other", b"0:body", False)


def test_a_second_delivery_without_the_mark_is_found() -> None:
    checker = _with_messages()
    checker.receives(9, "q", b"0:body", False)
    checker.receives(8, "q", b"0:body", True)
    with pytest.raises(Violation, match="twice"):
        checker.receives(9, "q", b"0:body", False)


def test_a_delivery_after_a_settled_ack_is_found() -> None:
    checker = _with_messages()
    item = checker.receives(9, "q", b"0:body", False)
    checker.acks(item)
    checker.closes_cleanly({item})
    with pytest.raises(Violation, match="back again"):
        checker.ends({item})


def test_a_wrong_order_is_found() -> None:
    checker = _with_messages()
    checker.receives(9, "q", b"2:body", False)
    checker.receives(8, "q", b"0:body", False)
    with pytest.raises(Violation, match="sent later"):
        checker.receives(9, "q", b"1:body", False)


def test_a_confirm_after_the_end_is_found() -> None:
    checker = _with_messages()
    checker.gives_up(1)
    with pytest.raises(Violation, match="after its connection ended"):
        checker.confirms(1)


def test_a_transient_message_may_be_gone_after_a_restart_and_not_before() -> None:
    checker = _with_messages()
    checker.publishes(3, b"3:body", 1, ("q",), persistent=False)
    checker.confirms(3)
    with pytest.raises(Violation, match="gone"):
        checker.ends(set())
    checker.restarts()
    checker.ends(set())


def test_a_persistent_message_is_owed_over_a_restart() -> None:
    checker = _with_messages()
    checker.confirms(1)
    checker.restarts()
    with pytest.raises(Violation, match="gone"):
        checker.ends(set())


def test_an_ack_may_be_forgotten_when_the_broker_dies() -> None:
    checker = _with_messages()
    item = checker.receives(9, "q", b"0:body", False)
    checker.acks(item)
    checker.closes_cleanly({item})
    checker.restarts()
    checker.ends({item})
