"""SCRAM against scramp, an implementation of other people: both sides agree on every octet."""

from __future__ import annotations

import os
from typing import Any

import pytest
import scramp

from harebell.auth.sasl.exchange import Context, Exchange
from harebell.auth.sasl.exchanges import begin_exchange
from harebell.auth.users import Users
from harebell.auth.verifiers import SHA1, SHA256, derived

MECHANISMS = pytest.mark.parametrize("mechanism", [SHA1, SHA256])
PASSWORDS = [
    "s3cret",
    "with space",
    "p\u00e4ss\u00adword",
    "\u2168",
    "a,=b",
    "\u30d1\u30b9",
    "x" * 500,
]


def begun(mechanism: str, user: str, password: str) -> Exchange:
    users = Users(os.urandom)
    users.add(user, password)
    exchange = begin_exchange(mechanism, Context(users, "10.0.0.1", os.urandom))
    assert exchange is not None
    return exchange


def client(mechanism: str, user: str, password: str) -> Any:
    return scramp.ScramClient([mechanism], user, password)


@MECHANISMS
@pytest.mark.parametrize("password", PASSWORDS)
def test_a_client_of_scramp_gets_in_and_believes_the_server(mechanism: str, password: str) -> None:
    exchange, other = begun(mechanism, "ann", password), client(mechanism, "ann", password)
    challenge = exchange.step(other.get_client_first().encode())
    assert challenge is not None
    other.set_server_first(challenge.decode())
    outcome = exchange.step(other.get_client_final().encode())
    assert outcome is not None
    other.set_server_final(outcome.decode())
    assert exchange.step(b"") is None
    assert exchange.user is not None


@MECHANISMS
def test_a_client_of_scramp_with_a_wrong_password_does_not_get_in(mechanism: str) -> None:
    exchange, other = begun(mechanism, "ann", "right"), client(mechanism, "ann", "wrong")
    challenge = exchange.step(other.get_client_first().encode())
    assert challenge is not None
    other.set_server_first(challenge.decode())
    assert exchange.step(other.get_client_final().encode()) is None
    assert exchange.user is None


@MECHANISMS
@pytest.mark.parametrize("password", PASSWORDS)
def test_scramp_derives_the_same_verifier(mechanism: str, password: str) -> None:
    salt = bytes(range(16))
    found = scramp.ScramMechanism(mechanism).make_auth_info(password, 5000, salt)
    ours = derived(mechanism, password, salt, 5000)
    assert found == (ours.salt, ours.stored, ours.server, ours.iterations)
