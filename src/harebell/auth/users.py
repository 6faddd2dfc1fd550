"""Users: their password hashes, permissions and limits."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import NamedTuple

from msgspec import Struct

from harebell.auth.cram import NAME as CRAM_MD5
from harebell.auth.cram import context_of
from harebell.auth.password_hashes import (
    SCRYPT,
    SHA256,
    hashed,
    is_slow,
    matches,
    salt_bytes,
    unmatched,
)
from harebell.auth.permissions import Permissions, everything
from harebell.auth.topics import TopicPermission, TopicRule
from harebell.auth.verifiers import Verifier, all_derived
from harebell.base.slices import Slices

IMPERSONATOR = "impersonator"
"""The tag of users who may publish messages with the user-id of another user."""
_SECRET_BYTES = 32
_PROOF_BYTES = 32

Later = Callable[["Doubt", str, Callable[[bool], None], Callable[[], bool]], None]
"""Compares a slow password: password, address, callback, whether it is still needed."""
LogIn = Callable[["Claim", Callable[["User | None", str], None], Callable[[], bool]], None]
"""Asks the backends of users: claim, callback with the user or why not, whether it is needed."""


def is_loopback(address: str) -> bool:
    """True if a peer address is on this machine (a Unix socket has the address "")."""
    return address == "" or address == "::1" or address.startswith(("127.", "::ffff:127."))


class Secrets(NamedTuple):
    """The stored forms of a password; see `User`."""

    password_hash: str
    algorithm: str
    verifiers: dict[str, Verifier]
    cram: bytes


class User:
    """A user.

    Args:
        name: the user's name.
        password_hash: see `harebell.auth.password_hashes`; "" refuses every password.
        loopback_only: whether only peers on this machine may log in.
        tags: tags as in RabbitMQ: administrator, monitoring, ...
        permissions: permissions by vhost. A vhost without permissions cannot be opened.
        algorithm: the hash algorithm of the password.
        max_connections: most connections; -1 for no limit.

    Attributes:
        topic_permissions: topic permissions by vhost and exchange.
        max_channels: most channels on all connections; -1 for no limit.
        verifiers: SCRAM verifiers by mechanism; none if the password was imported as a hash.
        cram: state for CRAM-MD5; b"" for none.
        proof: the hash that the right password was last compared with, and a fast hash of that
            password in this process; None before.
        expires: when a login ends, in seconds since 1970; 0 for never.
    """

    __slots__ = (
        *("name", "password_hash", "algorithm", "loopback_only", "tags", "expires"),
        *("permissions", "topic_permissions", "max_connections", "max_channels"),
        *("verifiers", "cram", "proof"),
    )

    def __init__(
        self,
        name: str,
        password_hash: str,
        loopback_only: bool = False,
        tags: tuple[str, ...] = (),
        permissions: dict[str, Permissions] | None = None,
        *,
        algorithm: str = SHA256,
        max_connections: int = -1,
    ) -> None:
        self.name = name
        self.password_hash = password_hash
        self.algorithm = algorithm
        self.loopback_only = loopback_only
        self.tags = tags
        self.expires = 0.0
        self.permissions = {} if permissions is None else permissions
        self.topic_permissions: dict[str, dict[str, TopicPermission]] = {}
        self.max_connections = max_connections
        self.max_channels = -1
        self.verifiers: dict[str, Verifier] = {}
        self.cram = b""
        self.proof: tuple[str, bytes] | None = None

    def opens(self, vhost: str) -> bool:
        """True if the user may open a vhost."""
        return vhost in self.permissions

    def allows(self, vhost: str, action: str, kind: str, name: str) -> bool:
        """True if the user has a permission.

        Args:
            vhost: the name of the vhost.
            action: configure, write or read.
            kind: "queue" or "exchange".
            name: of the queue or exchange; "amq.default" for the default exchange.
        """
        held = self.permissions.get(vhost)
        return held is not None and held.allow(action, name)

    def allows_some(self, vhost: str, action: str) -> bool:
        """True if the user has a permission for some name in a vhost.

        Args:
            vhost: the name of the vhost.
            action: configure, write or read.
        """
        held = self.permissions.get(vhost)
        return held is not None and held.allow_some(action)

    def knows(self, mechanism: str) -> bool:
        """True if a login with CRAM-MD5, or a mechanism of SCRAM, can be compared."""
        return bool(self.cram) if mechanism == CRAM_MD5 else mechanism in self.verifiers

    def topics(self, vhost: str, exchange: str) -> TopicRule | None:
        """Return the topic permissions for an exchange; None if all keys are allowed."""
        held = self.topic_permissions.get(vhost)
        return None if held is None else held.get(exchange)

    def settled(self) -> None:
        """Do nothing: the permissions are always known."""


class Claim(Struct, frozen=True):
    """A login that the configured backends of users decide about.

    Args:
        name: the claimed user.
        password: the password or token; None for a client that a certificate names.
        address: the address of the peer.
    """

    name: str
    password: str | None
    address: str

    def __repr__(self) -> str:
        return f"Claim({self.name!r}, ***, {self.address!r})"


class Doubt(Struct, frozen=True):
    """A password that is slow to compare.

    Args:
        user: whose password it may be.
        password: the password to compare.
    """

    user: User
    password: str

    def __repr__(self) -> str:
        return f"Doubt({self.user!r}, ***)"


class Users:
    """All users of the broker.

    Args:
        rng: returns random bytes for salts.
        cram: whether to store state for CRAM-MD5 of new passwords.
        algorithm: the hash algorithm of new passwords.

    Attributes:
        secret: a random secret.
        later: compares slow passwords outside the event loop; None to compare at once.
        log_in: asks the configured backends of users; None if these users are all there are.
        tokens: whether OAuth 2 tokens log in.
        local: whether these users may log in on their own, by every mechanism.
        thread: derives the stored forms of a new password; None to derive at once.
        complaint: returns what is wrong with a new name and password; "" if nothing is.
    """

    def __init__(
        self, rng: Callable[[int], bytes], *, cram: bool = False, algorithm: str = SCRYPT
    ) -> None:
        self._rng = rng
        self.cram = cram
        self.algorithm = algorithm
        self.later: Later | None = None
        self.log_in: LogIn | None = None
        self.local = True
        self.tokens = False
        self.thread: Executor | None = None
        self.complaint: Callable[[str, str], str] = lambda name, password: ""
        self.secret = rng(_SECRET_BYTES)
        self._loopback_names: frozenset[str] | None = None
        self._users: dict[str, User] = {}
        # By mechanism a user who knows it; None if none does.
        self._examples: dict[str, User | None] = {}
        # Whether a hash that is slow to compare was seen, and who stands for unknown users.
        self._slow = is_slow(algorithm)
        self._quick_stand_in = User("", unmatched(SHA256, rng), algorithm=SHA256)
        self._slow_stand_in = User("", unmatched(SCRYPT, rng), algorithm=SCRYPT)

    def add(
        self,
        name: str,
        password: str,
        *,
        loopback_only: bool = False,
        tags: tuple[str, ...] = (),
        vhosts: tuple[str, ...] = (),
        algorithm: str = "",
    ) -> User:
        """Add or replace a user with all permissions in some vhosts.

        Args:
            name: of the user.
            password: of the user.
            loopback_only: whether only peers on this machine may log in.
            tags: of the user.
            vhosts: where the user has all permissions.
            algorithm: the hash algorithm of the password; "" for that of new passwords.
        """
        user = User(name, "", loopback_only, tags, {vhost: everything() for vhost in vhosts})
        self.give(user, self.derived(password, algorithm))
        self.put(user)
        return user

    def put(self, user: User) -> None:
        """Add a user whose password is hashed already."""
        if self._loopback_names is not None:
            user.loopback_only = user.name in self._loopback_names
        self._note(user)
        self._users[user.name] = user

    def random(self, count: int) -> bytes:
        """Return random bytes, such as a salt."""
        return self._rng(count)

    def restrict_to_loopback(self, names: Iterable[str]) -> None:
        """Let these users log in from this machine only, and all others from everywhere."""
        self._loopback_names = frozenset(names)
        for user in self._users.values():
            user.loopback_only = user.name in self._loopback_names

    def is_loopback_only(self, name: str) -> bool:
        """True if a user of that name may log in from this machine only."""
        return self._loopback_names is not None and name in self._loopback_names

    def all(self) -> list[User]:
        """Return all users, in the order of creation."""
        return list(self._users.values())

    def by_name(self) -> list[User]:
        """Return all users, in the order of their names."""
        return sorted(self._users.values(), key=lambda user: user.name)

    def remove(self, name: str) -> User | None:
        """Remove a user; return None if there is none of that name."""
        return self._users.pop(name, None)

    def deriving(self, password: str) -> Slices[Secrets]:
        """Derive the stored forms of a new password with a new salt, in the thread if any.

        It takes 0.1 s or more and must not block the event loop.
        """
        if self.thread is None:
            return self.derived(password)
        derived = self.thread.submit(self.derived, password)
        while not derived.done():
            yield derived
        return derived.result()

    def give(self, user: User, secrets: Secrets) -> None:
        """Set the stored forms of a user's password."""
        user.password_hash, user.algorithm, user.verifiers, user.cram = secrets
        self._note(user)

    def _note(self, user: User) -> None:
        """Look at the secrets of a user, which may be new."""
        self._slow = self._slow or is_slow(user.algorithm)
        for mechanism, example in self._examples.items():
            if example is None and user.knows(mechanism):
                self._examples[mechanism] = user

    def some_know(self, mechanism: str) -> bool:
        """True if a user knows a mechanism: each login asks, and there may be many users."""
        example = self._examples.get(mechanism)
        if example is None and mechanism in self._examples:
            return False
        if example is None or not (self.get(example.name) is example and example.knows(mechanism)):
            example = next((each for each in self.all() if each.knows(mechanism)), None)
            self._examples[mechanism] = example
        return example is not None

    def derived(self, password: str, algorithm: str = "") -> Secrets:
        """Derive the stored forms of a new password at once; "" is the algorithm of new ones."""
        algorithm = algorithm or self.algorithm
        return Secrets(
            hashed(password, self._rng(salt_bytes(algorithm)), algorithm),
            algorithm,
            all_derived(password, self._rng),
            context_of(password) if self.cram else b"",
        )

    def get(self, name: str) -> User | None:
        """Return the user of that name, or None."""
        return self._users.get(name)

    def authenticate(self, name: str, password: str, address: str) -> User | None:
        """Return the user if the password is right and the address is allowed."""
        account = self.judge(name, password)
        if isinstance(account, Doubt):
            user, stored = account.user, account.user.password_hash
            right = matches(password, stored, user.algorithm)
            if right:
                self.remember(user, password, stored)
            account = user if right else None
        return account if account is not None and self.admits(account, address) else None

    def judge(self, name: str, password: str) -> User | Doubt | None:
        """Return the user if that is fast to find out, a doubt that decides, or None.

        A refusal takes the same work whether or not there is such a user, which hash it has, and
        whether its password was right before: a comparison with a fast hash, and one with a slow
        hash if there is any slow hash. So the time of an answer does not tell which users exist.
        """
        user = self._users.get(name)
        quick, slow = self._quick_stand_in, self._slow_stand_in
        if user is not None and user.password_hash:
            quick, slow = (quick, user) if is_slow(user.algorithm) else (user, slow)
        if matches(password, quick.password_hash, quick.algorithm) or self.proven(slow, password):
            return user
        return Doubt(slow, password) if self._slow else None

    def proven(self, user: User, password: str) -> bool:
        """True if a password was compared with the slow hash of a user before, and was right."""
        stored = user.password_hash
        known = user.proof[1] if user.proof is not None and user.proof[0] == stored else b""
        return hmac.compare_digest(known, self._proof(password, stored))

    def was_right(self, name: str, password: str) -> bool:
        """True if a password is known to be right; it takes the same work for every name."""
        return self.proven(self._users.get(name) or self._slow_stand_in, password)

    def remember(self, user: User, password: str, stored: str) -> None:
        """Note that a password matched the stored hash, to compare it fast from now on."""
        user.proof = (stored, self._proof(password, stored))

    def _proof(self, password: str, stored: str) -> bytes:
        # A stored hash has no zero byte, so no two pairs have the same bytes. BLAKE2 has a key by
        # itself (RFC 7693 2.9), and takes a tenth of the time of an HMAC: each login needs two.
        proved = f"{stored}\0{password}".encode()
        return hashlib.blake2b(proved, key=self.secret, digest_size=_PROOF_BYTES).digest()

    def admits(self, user: User, address: str) -> bool:
        """True if a user may log in from an address."""
        return not user.loopback_only or is_loopback(address)
