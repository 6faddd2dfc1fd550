"""Guesses of passwords over HTTP are limited by address and user, with those over AMQP."""

from __future__ import annotations

import asyncio
from base64 import b64encode

import pytest

from harebell.admin.context import AdminContext
from harebell.front.common import password_guesses
from harebell.front.limits import GUESS_WAIT_SECONDS, NEGOTIATION_FAILURES
from harebell.management.http.errors import HttpError
from harebell.management.http.login import Logins
from tests.unit.management.control.test_dispatcher import Gathering, World

ADDRESS = "10.0.0.1"


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> AdminContext:
    """A broker at whose door, AMQP, somebody has guessed too often; a guess waits a moment."""
    monkeypatch.setattr(password_guesses, "GUESS_SECONDS", GUESS_WAIT_SECONDS / 3.5)
    slept = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: slept(seconds and 0.001))
    world = World()
    for name in ("ann", "bob", "eve"):
        world.users.add(name, "secret")
    throttle = world.registry.handshake_throttle
    throttle.opened(ADDRESS, "eve")
    for _ in range(NEGOTIATION_FAILURES):
        throttle.guesses.refused(ADDRESS, "ann", 0.0, lambda level, text: None)
    definitions = Gathering()
    return AdminContext(
        world.broker, world.users, world.registry, definitions, lambda: 0.0, lambda _, line: None
    )


async def _status(logins: Logins, name: str, password: str, address: str = ADDRESS) -> int:
    header = "Basic " + b64encode(f"{name}:{password}".encode()).decode()
    try:
        user = await logins.user_of(header, address)
    except HttpError as error:
        return error.status
    assert user.name == name
    return 200


@pytest.mark.asyncio
async def test_guesses_of_all_connections_wait_for_each_other(context: AdminContext) -> None:
    logins = Logins(context)
    guesses = [_status(logins, "ann", "wrong") for _ in range(5)]
    assert await asyncio.gather(*guesses) == [401, 401, 401, 429, 429]
    assert await _status(logins, "bob", "secret") == 200


@pytest.mark.asyncio
async def test_users_that_have_logged_in_from_the_address_do_not_wait(
    context: AdminContext,
) -> None:
    logins = Logins(context)
    waiting = [asyncio.create_task(_status(logins, "ann", "wrong")) for _ in range(4)]
    await asyncio.sleep(0)
    assert await _status(logins, "eve", "secret") == 200
    assert await _status(logins, "bob", "secret", "10.0.0.2") == 200
    assert await asyncio.gather(*waiting) == [401, 401, 401, 429]


@pytest.mark.asyncio
async def test_the_right_password_is_taken_when_its_turn_comes(context: AdminContext) -> None:
    logins = Logins(context)
    assert await _status(logins, "bob", "secret") == 200
    assert await _status(logins, "ann", "secret", "10.0.0.2") == 200


@pytest.mark.asyncio
async def test_wrong_passwords_over_http_count_for_amqp(context: AdminContext) -> None:
    logins, throttle = Logins(context), context.registry.handshake_throttle
    for _ in range(NEGOTIATION_FAILURES):
        assert await _status(logins, "bob", "wrong", "10.0.0.3") == 401
    assert throttle.guesses.exhausted("10.0.0.3", "anybody", 0.0)
    assert throttle.guesses.refused("10.0.0.3", "bob", 0.0, lambda level, text: None)
