"""A refusal takes the same work for users who exist and for others: its time tells nothing.

What is counted is hashes of passwords, not time.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from typing import Any

import pytest

from harebell.auth import password_hashes
from harebell.auth.password_hashes import MD5, SCRYPT, SHA256, SHA512, hashed, salt_bytes
from harebell.auth.sasl.exchange import Context
from harebell.auth.sasl.exchanges import begin_exchange, begin_single
from harebell.auth.users import Claim, User, Users
from harebell.management.backends.contract import Denied
from harebell.management.backends.internal import InternalBackend
from harebell.server.password_verifier import PasswordVerifier, user_with

NAMES = ("unknown", "slow", "logged in", "sha256", "sha512", "md5", "none")
"""Users who do not exist, or have these hashes; one was proven to be right before."""


class Hashes:
    """How many hashes were computed, by their kind."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts = {"slow": 0, "fast": 0}
        self._count(monkeypatch, password_hashes, "_scrypt", "slow")
        self._count(monkeypatch, password_hashes, "_digest", "fast")

    def _count(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, kind: str) -> None:
        real: Callable[..., Any] = getattr(module, name)

        def counted(*given: Any) -> Any:
            self.counts[kind] += 1
            return real(*given)

        monkeypatch.setattr(module, name, counted)

    def taken(self) -> dict[str, int]:
        """The counts since the last call."""
        found, self.counts = self.counts, {"slow": 0, "fast": 0}
        return found


@pytest.fixture
def users() -> Users:
    """Users with every kind of hash."""
    users = Users(os.urandom)
    users.add("slow", "secret")
    users.remember(users.add("logged in", "secret"), "secret", _stored(users, "logged in"))
    for name, algorithm in (("sha256", SHA256), ("sha512", SHA512), ("md5", MD5)):
        stored = hashed("secret", bytes(salt_bytes(algorithm)), algorithm)
        users.put(User(name, stored, algorithm=algorithm))
    users.put(User("none", "", algorithm=SCRYPT))
    return users


def _stored(users: Users, name: str) -> str:
    user = users.get(name)
    assert user is not None
    return user.password_hash


@pytest.fixture
def hashes(users: Users, monkeypatch: pytest.MonkeyPatch) -> Hashes:
    """The hashes that are computed after the users were made."""
    return Hashes(monkeypatch)


def test_every_refusal_takes_one_slow_and_one_fast_hash(users: Users, hashes: Hashes) -> None:
    for name in NAMES:
        assert users.authenticate(name, "wrong", "") is None
        assert hashes.taken() == {"slow": 1, "fast": 1}, name


def test_the_right_password_is_taken_and_takes_no_slow_hash_again(users: Users) -> None:
    for name in NAMES[1:-1]:
        assert users.authenticate(name, "secret", "") is users.get(name)
        assert users.judge(name, "secret") is users.get(name)


def test_where_all_hashes_are_fast_an_unknown_user_takes_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = Users(os.urandom, algorithm=SHA256)
    users.add("ann", "secret")
    hashes = Hashes(monkeypatch)
    for name in ("ann", "unknown"):
        assert users.authenticate(name, "wrong", "") is None
        assert hashes.taken() == {"slow": 0, "fast": 1}


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_every_mechanism_with_a_password_compares_in_the_thread(
    users: Users, hashes: Hashes, mechanism: str
) -> None:
    users.later = lambda *_: None

    def login(name: str) -> Any:
        table = {"LOGIN": name, "PASSWORD": "wrong"}
        context = Context(users, "", os.urandom, decode_table=lambda _: table)
        exchange = begin_single(mechanism, context)
        assert exchange is not None
        exchange.step(f"\0{name}\0wrong".encode())
        return exchange

    for name in NAMES:
        exchange = login(name)
        assert exchange.user is None
        assert exchange.doubt is not None, name
        assert exchange.doubt.user.algorithm == SCRYPT
        assert hashes.taken() == {"slow": 0, "fast": 1}
        exchange.settle(right=False)
        assert exchange.user is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-1", "CRAM-MD5"])
def test_challenges_take_as_many_digests_for_users_that_do_not_exist(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = Users(os.urandom, cram=True)
    users.add("ann", "secret")
    counts: list[str] = []
    real = hashlib.new

    def counted(name: str, *given: Any) -> Any:
        counts.append(name)
        return real(name, *given)

    monkeypatch.setattr(hashlib, "new", counted)
    taken = []
    for name in ("ann", "unknown"):
        counts.clear()
        context = Context(users, "", os.urandom, allowed=(mechanism,))
        exchange = begin_exchange(mechanism, context)
        assert exchange is not None
        first = b"" if mechanism == "CRAM-MD5" else f"n,,n={name},r=abc".encode()
        challenge = exchange.step(first)
        assert challenge
        size = 20 if mechanism == "SCRAM-SHA-1" else 32
        nonce = challenge.split(b",")[0]
        proof = b"A" * (4 * ((size + 2) // 3) - 1) + b"="
        final = b"c=biws," + nonce + b",p=" + proof
        exchange.step(f"{name} {'0' * 32}".encode() if mechanism == "CRAM-MD5" else final)
        assert exchange.user is None
        taken.append(list(counts))
    assert taken[0] == taken[1]


def test_every_door_compares_the_password_of_users_that_do_not_exist(users: Users) -> None:
    compared: list[str] = []

    def compare(password: str, stored: str, algorithm: str) -> bool:
        compared.append(algorithm)
        return password_hashes.matches(password, stored, algorithm)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        verifier = PasswordVerifier(loop, users, lambda: None, compare)
        users.later = verifier
        try:
            for name in NAMES:
                assert await user_with(users, name, "wrong", "10.0.0.1") is None
                with pytest.raises(Denied):
                    await InternalBackend(users).user_of(Claim(name, "wrong", "10.0.0.1"))
                assert compared == [SCRYPT, SCRYPT], name
                compared.clear()
            assert await user_with(users, "slow", "secret", "10.0.0.1") is users.get("slow")
        finally:
            verifier.close()

    asyncio.run(run())
