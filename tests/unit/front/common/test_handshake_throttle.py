"""Who keeps failing to begin a connection is turned away for a while, and nobody else is."""

from __future__ import annotations

from harebell.front.common.handshake_throttle import HandshakeThrottle
from harebell.front.limits import (
    NEGOTIATION_BLOCK_SECONDS,
    NEGOTIATION_FAILURES,
    NEGOTIATION_OFFENDERS,
    NEGOTIATION_WINDOW_SECONDS,
)

LINES: list[tuple[str, str]] = []


def fail(
    offenders: HandshakeThrottle, times: int, address: str = "10.0.0.1", now: float = 0.0
) -> None:
    for _ in range(times):
        offenders.failed(address, now, lambda level, text: LINES.append((level, text)))


def test_an_address_is_blocked_when_it_fails_too_often_and_for_a_while_only() -> None:
    LINES.clear()
    offenders = HandshakeThrottle()
    fail(offenders, NEGOTIATION_FAILURES - 1)
    assert not offenders.blocked("10.0.0.1", 0.0)
    fail(offenders, 1)
    assert offenders.blocked("10.0.0.1", NEGOTIATION_BLOCK_SECONDS - 0.1)
    assert not offenders.blocked("10.0.0.2", 0.0)
    assert not offenders.blocked("10.0.0.1", NEGOTIATION_BLOCK_SECONDS)
    assert [level for level, _ in LINES] == ["warning"]
    assert "10.0.0.1" in LINES[0][1]


def test_failures_that_are_far_apart_do_not_add_up() -> None:
    offenders = HandshakeThrottle()
    for turn in range(3):
        fail(offenders, NEGOTIATION_FAILURES - 1, now=turn * (NEGOTIATION_WINDOW_SECONDS + 1))
    assert not offenders.blocked("10.0.0.1", 0.0)


def test_an_address_that_opens_a_connection_is_forgiven() -> None:
    offenders = HandshakeThrottle()
    fail(offenders, NEGOTIATION_FAILURES - 1)
    offenders.opened("10.0.0.1")
    fail(offenders, 1)
    assert not offenders.blocked("10.0.0.1", 0.0)
    assert len(offenders) == 1


def test_no_more_addresses_are_remembered_than_there_is_room_for() -> None:
    offenders = HandshakeThrottle()
    fail(offenders, NEGOTIATION_FAILURES, "first")
    for number in range(NEGOTIATION_OFFENDERS):
        fail(offenders, 1, f"address {number}")
    assert len(offenders) == NEGOTIATION_OFFENDERS
    assert not offenders.blocked("first", 0.0)


def test_an_address_that_goes_on_failing_is_blocked_again() -> None:
    LINES.clear()
    offenders = HandshakeThrottle()
    fail(offenders, NEGOTIATION_FAILURES)
    after = NEGOTIATION_BLOCK_SECONDS + 1
    fail(offenders, NEGOTIATION_FAILURES, now=after)
    assert offenders.blocked("10.0.0.1", after)
    assert len(LINES) == 2
