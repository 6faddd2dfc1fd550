"""Wrong passwords have one consequence at every door: they are slow, and no real user is kept out.

Each door is tried beside the others, on one broker and one clock. Over AMQP a login is watched from
its first bytes; over HTTP a request waits in `asyncio.sleep`, which here lets the broker's
clock run.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from harebell.admin.context import AdminContext
from harebell.front.limits import GUESS_WAIT_SECONDS, NEGOTIATION_FAILURES
from harebell.management.http.errors import HttpError
from harebell.management.http.login import Logins
from harebell.wire.v010 import controls as k
from harebell.wire.v09 import methods as m
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite, MemoryWire
from tests.conformance.v010.raw import Peer010
from tests.conformance.v010.test_login import proof
from tests.conformance.v010t.peer import Peer as Transitional
from tests.conformance.v08.peer import Peer8, Peer9
from tests.unit.management.control.test_dispatcher import Gathering

HERE, THERE = "10.0.0.1", "10.0.0.2"
WAITS, IN, REFUSED, LATER = "waits", "in", "refused", "refused for now"

Outcome = Callable[[], str]


def site_with_users() -> MemorySite:
    site = MemorySite()
    for name in ("ann", "bob"):
        site.users.add(name, "secret", vhosts=("/",))
    return site


def outcome_of(wire: MemoryWire, codes: tuple[int, ...]) -> str:
    """What has become of a login over AMQP; the reply code of one that was refused for now."""
    seen = bytes(wire.arrived)
    if wire.connection.user.name:
        return IN
    if b"too many passwords of user" in seen:
        assert any(code.to_bytes(2) in seen for code in codes)
        assert b"wait 6 s" in seen
        return LATER
    # Those who did not ask for a reply get none, and are cut after a pause.
    cut = wire.connection.closing or wire.connection.scanner.stopped
    return REFUSED if b"Login was refused" in seen or cut else WAITS


def classic(kind: type[Any], **capabilities: bool) -> Callable[..., Outcome]:
    """A version whose login is one response."""

    def begin(site: MemorySite, user: str, password: str, address: str) -> Outcome:
        wire = site.connect(address)
        peer = kind(site, wire)
        peer.greet()
        table = {"capabilities": capabilities} if capabilities else {}
        response = f"\0{user}\0{password}".encode()
        peer.send(m.ConnectionStartOk(table, "PLAIN", response, "en_US"))
        return lambda: outcome_of(wire, (403,) if capabilities else (530,))

    return begin


def plain_010(site: MemorySite, user: str, password: str, address: str) -> Outcome:
    wire = site.connect(address)
    peer = Peer010(site, wire)
    peer.greet()
    response = f"\0{user}\0{password}".encode()
    peer.send(k.ConnectionStartOk({}, "PLAIN", response, "en_US"))
    return lambda: outcome_of(wire, (320,))


def scram(site: MemorySite, user: str, password: str, address: str) -> Outcome:
    wire = site.connect(address)
    peer = Peer010(site, wire)
    peer.greet()
    bare = f"n={user},r=abcdef"
    peer.send(k.ConnectionStartOk({}, "SCRAM-SHA-256", f"n,,{bare}".encode(), "en_US"))
    challenge = peer.expect(k.ConnectionSecure).challenge.decode()
    answer, signature = proof("sha256", password, bare, challenge)
    peer.send(k.ConnectionSecureOk(answer))

    def outcome() -> str:
        if signature in wire.arrived:
            # Neither has the peer been told before that its password is right.
            peer.expect(k.ConnectionSecure)
            peer.send(k.ConnectionSecureOk(b""))
        return outcome_of(wire, (320,))

    return outcome


class Door(NamedTuple):
    """A way to log in over AMQP: begins a login, and returns what tells its outcome."""

    name: str
    begin: Callable[[MemorySite, str, str, str], Outcome]


DOORS = [
    Door("0-8", classic(Peer8)),
    Door("0-9", classic(Peer9)),
    Door("0-9-1", classic(Peer, authentication_failure_close=True)),
    Door("0-9-1 without replies", classic(Peer)),
    Door("transitional 0-10", classic(Transitional)),
    Door("0-10 PLAIN", plain_010),
    Door("0-10 SCRAM", scram),
]
EACH = pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])


def guessed(site: MemorySite, user: str, address: str = HERE) -> None:
    """Have as many wrong passwords as are too many, at all doors in turn."""
    for number in range(NEGOTIATION_FAILURES):
        outcome = DOORS[number % len(DOORS)].begin(site, user, "wrong", address)
        assert outcome() == REFUSED


@EACH
@pytest.mark.parametrize("user", ["ann", "unknown"])
def test_after_too_many_wrong_passwords_each_takes_its_time_at_every_door(
    door: Door, user: str
) -> None:
    site = site_with_users()
    guessed(site, user)
    known = user == "ann"
    right = door.begin(site, user, "secret", HERE)
    wrong = [door.begin(site, user, "wrong", HERE) for _ in range(int(GUESS_WAIT_SECONDS) - 1)]
    late = door.begin(site, user, "secret", HERE)
    assert [right(), *(each() for each in wrong)] == [WAITS] * int(GUESS_WAIT_SECONDS)
    assert late() == LATER
    site.pass_time(1.0)
    assert right() == (IN if known else REFUSED)
    assert {each() for each in wrong} == {WAITS}
    site.pass_time(GUESS_WAIT_SECONDS - 1.0)
    assert {each() for each in wrong} == {REFUSED}


@EACH
def test_guesses_from_one_address_do_not_keep_their_user_out_at_another(door: Door) -> None:
    site = site_with_users()
    guessed(site, "ann")
    for _ in range(20):
        door.begin(site, "ann", "wrong", HERE)
    outcome = door.begin(site, "ann", "secret", THERE)
    assert outcome() == WAITS
    site.pass_time(1.0)
    assert outcome() == IN
    # And at once from when the connection is open.
    site.registry.handshake_throttle.opened(THERE, "ann")
    assert door.begin(site, "ann", "secret", THERE)() == IN


@EACH
def test_guesses_at_one_user_do_not_keep_others_of_the_address_out(door: Door) -> None:
    site = site_with_users()
    guessed(site, "ann")
    for _ in range(20):
        door.begin(site, "ann", "wrong", HERE)
    outcome = door.begin(site, "bob", "secret", HERE)
    site.pass_time(1.0)
    assert outcome() == IN


@EACH
def test_the_right_password_of_an_address_that_knows_it_passes_by(door: Door) -> None:
    site = site_with_users()
    assert door.begin(site, "ann", "secret", HERE)() == IN
    site.registry.handshake_throttle.opened(HERE, "ann")
    guessed(site, "ann")
    assert door.begin(site, "ann", "secret", HERE)() == IN
    # That is no way to try passwords fast: a wrong one is in the way of the next for a moment.
    site.pass_time(1.0)
    door.begin(site, "ann", "wrong", HERE)
    assert door.begin(site, "ann", "secret", HERE)() == WAITS


def http(site: MemorySite, slept: list[float], name: str, password: str, address: str) -> int:
    """The status of a request with HTTP Basic; what it waits passes on the site's clock."""

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        site.pass_time(seconds)

    async def asked() -> int:
        definitions: Any = Gathering()
        context = AdminContext(
            site.broker,
            site.users,
            site.registry,
            definitions,
            lambda: site.now,
            lambda level, line: None,
        )
        header = "Basic " + b64encode(f"{name}:{password}".encode()).decode()
        error: HttpError | None = None
        try:
            await Logins(context).user_of(header, address)
        except HttpError as refused:
            error = refused
        if error is None:
            return 200
        if error.status == 429:
            assert dict(error.headers)["retry-after"] == "6"
            assert "wait 6 s" in error.reason
        return error.status

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "sleep", sleep)
        return asyncio.run(asked())


def test_http_shares_the_budget_of_guesses_with_every_version_of_amqp() -> None:
    site = site_with_users()
    guessed(site, "ann")
    slept: list[float] = []
    assert http(site, slept, "ann", "wrong", HERE) == 401
    assert slept == [1.0]
    for _ in range(int(GUESS_WAIT_SECONDS)):
        assert DOORS[0].begin(site, "ann", "wrong", HERE)() == WAITS
    assert http(site, slept, "ann", "secret", HERE) == 429
    assert http(site, slept, "ann", "secret", THERE) == 200
    assert http(site, slept, "bob", "secret", HERE) == 200
    assert slept == [1.0, 1.0, 1.0]


def test_wrong_passwords_over_http_slow_those_over_amqp() -> None:
    site = site_with_users()
    slept: list[float] = []
    for _ in range(NEGOTIATION_FAILURES):
        assert http(site, slept, "ann", "wrong", HERE) == 401
    assert slept == []
    for door in DOORS[: int(GUESS_WAIT_SECONDS)]:
        assert door.begin(site, "ann", "wrong", HERE)() == WAITS
    assert DOORS[-1].begin(site, "ann", "wrong", HERE)() == LATER


def test_a_client_without_a_password_does_not_guess() -> None:
    site = site_with_users()
    guesses = site.registry.handshake_throttle.guesses
    for _ in range(2 * NEGOTIATION_FAILURES):
        guesses.refused(HERE, "ann", site.now, lambda level, text: None, guess=False)
    assert not guesses.exhausted(HERE, "bob", site.now)
