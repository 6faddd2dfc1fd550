"""Wrong passwords count by address and by user, and further guesses wait."""

from __future__ import annotations

from harebell.front.common.handshake_throttle import HandshakeThrottle
from harebell.front.common.password_guesses import PasswordGuesses
from harebell.front.limits import (
    GUESSES_BLOCK_SECONDS,
    LOGIN_SOURCES,
    NEGOTIATION_BLOCK_SECONDS,
    NEGOTIATION_FAILURES,
)

LINES: list[tuple[str, str]] = []


def refuse(guesses: PasswordGuesses, user: str, times: int, now: float = 0.0) -> list[bool]:
    def journal(level: str, text: str) -> None:
        LINES.append((level, text))

    return [guesses.refused("10.0.0.1", user, now, journal) for _ in range(times)]


def test_refused_logins_count_by_address_and_user_and_block_no_address() -> None:
    LINES.clear()
    throttle = HandshakeThrottle()
    guesses = throttle.guesses
    assert not any(refuse(guesses, "ann", NEGOTIATION_FAILURES))
    assert [
        (
            "warning",
            f"user 'ann' was refused {NEGOTIATION_FAILURES} times from 10.0.0.1: the log has no "
            f"line of more of them for {NEGOTIATION_BLOCK_SECONDS:g} s, and passwords of this user "
            "from there wait for each other",
        )
    ] == LINES
    assert all(refuse(guesses, "ann", 3))
    assert not any(refuse(guesses, "bob", 3))
    assert not throttle.blocked("10.0.0.1", 0.0)
    assert not any(refuse(guesses, "ann", 1, NEGOTIATION_BLOCK_SECONDS))


def test_guesses_count_by_address_and_by_user_for_those_who_have_not_logged_in_there() -> None:
    guesses = PasswordGuesses()
    guesses.opened("10.0.0.1", "eve")
    refuse(guesses, "ann", NEGOTIATION_FAILURES)
    assert guesses.exhausted("10.0.0.1", "ann", 0.0)
    assert guesses.exhausted("10.0.0.1", "bob", 0.0)
    assert guesses.exhausted("10.0.0.2", "ann", 0.0)
    assert not guesses.exhausted("10.0.0.1", "eve", 0.0)
    assert not guesses.exhausted("10.0.0.2", "bob", 0.0)
    assert guesses.exhausted("10.0.0.1", "bob", GUESSES_BLOCK_SECONDS - 0.1)
    assert not guesses.exhausted("10.0.0.1", "bob", GUESSES_BLOCK_SECONDS)


def test_the_names_of_one_address_do_not_push_out_what_others_have_guessed() -> None:
    guesses = PasswordGuesses()
    refuse(guesses, "ann", NEGOTIATION_FAILURES)
    for number in range(2 * LOGIN_SOURCES):
        guesses.refused("10.0.0.9", f"user {number}", 0.0, lambda level, text: None)
    later = NEGOTIATION_BLOCK_SECONDS + 1
    assert guesses.exhausted("10.0.0.1", "bob", later)
    assert guesses.exhausted("10.0.0.2", "ann", later)


def test_a_user_that_gets_in_is_forgiven() -> None:
    guesses = PasswordGuesses()
    refuse(guesses, "ann", NEGOTIATION_FAILURES + 1)
    guesses.opened("10.0.0.1", "ann")
    assert not any(refuse(guesses, "ann", 1))
