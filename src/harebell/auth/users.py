"""Users: their password hashes, and where they may come from."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple

from harebell.auth.cram import context_of
from harebell.auth.passwords import SCRYPT, SHA256, hashed, is_slow, matches, salt_bytes
from harebell.auth.permissions import Permissions, everything
from harebell.auth.topics import TopicPermission
from harebell.auth.verifiers import Verifier, all_derived
from harebell.base.slices import Slices

_SECRET_BYTES = 32

Later = Callable[["Doubt", str, Callable[[bool], None], Callable[[], bool]], None]
"""Compares a password in its own time: what, for which address, whom to tell, whether still to."""


def is_loopback(address: str) -> bool:
    """Whether a peer's address is this machine's own (a Unix socket has the address "")."""
    return address == "" or address == "::1" or address.startswith(("127.", "::ffff:127."))


class Secrets(NamedTuple):
    """What is kept of a password; as in `User`."""

    password_hash: str
    algorithm: str
    verifiers: dict[str, Verifier]
    cram: bytes


@dataclass(slots=True)
class User:
    """One user.

    Args:
        name: the user's name.
        password_hash: see `harebell.auth.passwords`; "" refuses every password.
        loopback_only: refused unless the peer is on this machine.
        tags: as RabbitMQ's: administrator, monitoring, ...
        permissions: what the user may do, by the name of the vhost. A vhost without is closed.
        algorithm: of the password's hash.
        topic_permissions: by the name of the vhost, and of the exchange there.
        max_connections: how many at the same time; -1 for no limit.
        max_channels: how many on all connections together; -1 for no limit.
        verifiers: what SCRAM needs of the password, by mechanism; none for a user whose password
            came as a hash.
        cram: what CRAM-MD5 needs of the password; b"" for nothing.
        proof: the hash that a right password was last compared with, and what tells that password
            quickly in this process; None before.
    """

    name: str
    password_hash: str
    loopback_only: bool = False
    tags: tuple[str, ...] = ()
    permissions: dict[str, Permissions] = field(default_factory=dict)
    algorithm: str = SHA256
    topic_permissions: dict[str, dict[str, TopicPermission]] = field(default_factory=dict)
    max_connections: int = -1
    max_channels: int = -1
    verifiers: dict[str, Verifier] = field(default_factory=dict)
    cram: bytes = b""
    proof: tuple[str, bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def vhosts(self) -> set[str]:
        """Names of the vhosts that the user may open."""
        return set(self.permissions)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A password that takes long to compare.

    Args:
        user: whose it may be.
        password: what was given.
    """

    user: User
    password: str = field(repr=False)


class Users:
    """All users of the broker.

    Args:
        rng: returns that many random octets; used for salts.
        cram: whether passwords that are set leave what CRAM-MD5 needs of them.
        algorithm: of the hashes of passwords that are set.

    Attributes:
        secret: bytes that are kept secret.
        later: compares passwords that take long, while others are served; None has them compared
            at once.
        thread: finds what is kept of a new password; None has that done at once.
    """

    def __init__(
        self, rng: Callable[[int], bytes], *, cram: bool = False, algorithm: str = SCRYPT
    ) -> None:
        self._rng = rng
        self.cram = cram
        self.algorithm = algorithm
        self.later: Later | None = None
        self.thread: Executor | None = None
        self.secret = rng(_SECRET_BYTES)
        self._users: dict[str, User] = {}

    def add(
        self,
        name: str,
        password: str,
        *,
        loopback_only: bool = False,
        tags: tuple[str, ...] = (),
        vhosts: tuple[str, ...] = (),
    ) -> User:
        """Add a user who may do everything in some vhosts, or replace the one of that name."""
        user = User(name, "", loopback_only, tags, {vhost: everything() for vhost in vhosts})
        self.set_password(user, password)
        self._users[name] = user
        return user

    def put(self, user: User) -> None:
        """Take a user in whose password is hashed already."""
        self._users[user.name] = user

    def all(self) -> list[User]:
        """Every user, in the order of their coming."""
        return list(self._users.values())

    def remove(self, name: str) -> User | None:
        """Let a user go; None when there is none of that name."""
        return self._users.pop(name, None)

    def set_password(self, user: User, password: str) -> None:
        """Give a user another password, with a new salt."""
        self.give(user, self._derive(password))

    def deriving(self, password: str) -> Slices[Secrets]:
        """What is kept of a new password, with a new salt; a thread finds it, where there is one.

        It takes a tenth of a second and more, and must not hold up others.
        """
        if self.thread is None:
            return self._derive(password)
        found = self.thread.submit(self._derive, password)
        while not found.done():
            yield found
        return found.result()

    def give(self, user: User, secrets: Secrets) -> None:
        """Give a user the password that these are of."""
        user.password_hash, user.algorithm, user.verifiers, user.cram = secrets

    def _derive(self, password: str) -> Secrets:
        algorithm = self.algorithm
        return Secrets(
            hashed(password, self._rng(salt_bytes(algorithm)), algorithm),
            algorithm,
            all_derived(password, self._rng),
            context_of(password) if self.cram else b"",
        )

    def get(self, name: str) -> User | None:
        """The user of that name."""
        return self._users.get(name)

    def authenticate(self, name: str, password: str, address: str) -> User | None:
        """The user, if the password is right and may be used from that address."""
        user = self._users.get(name)
        if user is None:
            return None
        right = self.judged(user, password)
        if right is None:
            right = matches(password, user.password_hash, user.algorithm)
            if right:
                self.remember(user, password, user.password_hash)
        return user if right and self.admits(user, address) else None

    def judged(self, user: User, password: str) -> bool | None:
        """Whether a password is right, where that can be said quickly; None where it cannot.

        Once the right password was compared with a slow hash, any other is wrong at a glance.
        """
        if not user.password_hash:
            return False
        if not is_slow(user.algorithm):
            return matches(password, user.password_hash, user.algorithm)
        if user.proof is None or user.proof[0] != user.password_hash:
            return None
        return hmac.compare_digest(user.proof[1], self._told(password, user.password_hash))

    def remember(self, user: User, password: str, stored: str) -> None:
        """A password was found to be right for a stored hash: it is known from now on."""
        user.proof = (stored, self._told(password, stored))

    def _told(self, password: str, stored: str) -> bytes:
        key = hmac.digest(self.secret, stored.encode(), "sha256")
        return hmac.digest(key, password.encode(), "sha256")

    def admits(self, user: User, address: str) -> bool:
        """Whether a user may log in from an address."""
        return not user.loopback_only or is_loopback(address)
