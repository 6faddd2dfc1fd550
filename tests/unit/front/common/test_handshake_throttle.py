"""Who keeps failing to begin a connection is turned away for a while, and nobody else is."""

from __future__ import annotations

from harebell.base.limits import (
    NEGOTIATION_BLOCK_SECONDS,
    NEGOTIATION_FAILURES,
    NEGOTIATION_OFFENDERS,
    NEGOTIATION_WINDOW_SECONDS,
)
from harebell.front.common.handshake_throttle import HandshakeThrottle

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


def refuse(offenders: HandshakeThrottle, user: str, times: int, now: float = 0.0) -> list[bool]:
    def journal(level: str, text: str) -> None:
        LINES.append((level, text))

    return [offenders.refused("10.0.0.1", user, now, journal) for _ in range(times)]


def test_refused_logins_count_by_address_and_user_and_block_no_address() -> None:
    LINES.clear()
    offenders = HandshakeThrottle()
    assert not any(refuse(offenders, "ann", NEGOTIATION_FAILURES))
    assert [
        (
            "warning",
            f"user 'ann' was refused {NEGOTIATION_FAILURES} times from 10.0.0.1: connections "
            "with a wrong password are closed without an answer for "
            f"{NEGOTIATION_BLOCK_SECONDS:g} s, and the right one is taken",
        )
    ] == LINES
    assert all(refuse(offenders, "ann", 3))
    assert not any(refuse(offenders, "bob", 3))
    assert not offenders.blocked("10.0.0.1", 0.0)
    assert not any(refuse(offenders, "ann", 1, NEGOTIATION_BLOCK_SECONDS))


def test_a_user_that_gets_in_is_forgiven() -> None:
    offenders = HandshakeThrottle()
    refuse(offenders, "ann", NEGOTIATION_FAILURES + 1)
    offenders.opened("10.0.0.1", "ann")
    assert not any(refuse(offenders, "ann", 1))
