"""The backend `cache`: remembers for a while what another backend has answered (`auth_cache`).

All connections share what it knows. Passwords are kept as keyed hashes only. An answer that a
server failed to give is not kept, and a refusal only where that is configured.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Hashable
from dataclasses import replace
from itertools import islice
from typing import Any

from harebell.auth.authority import Authority, Question
from harebell.auth.users import Claim
from harebell.base.share import FairCache
from harebell.management.backends.asked import AskedAuthority
from harebell.management.backends.contract import Backend, Decide, Denied, Identity
from harebell.management.limits import BACKEND_CACHE_ENTRIES

_MS = 1_000


class Remembered:
    """Answers that are valid for a while.

    Args:
        seconds: for how long.
        clock: returns seconds, monotonic.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        # In the order of their ends, for all are valid equally long.
        self._answers: FairCache[Hashable, tuple[float, Any]] = FairCache(BACKEND_CACHE_ENTRIES)

    def get(self, key: Hashable) -> Any:
        """Return an answer; None if there is none."""
        decision = self._answers.get(key)
        if decision is None:
            return None
        if decision[0] <= self._clock():
            self._answers.pop(key)
            return None
        return decision[1]

    def put(self, owner: str, key: Hashable, answer: Any) -> None:
        """Keep an answer; too many push out others of the owner who has most."""
        now = self._clock()
        for old, (until, _) in list(islice(self._answers.items(), 2)):
            if until <= now:
                self._answers.pop(old)
        self._answers.put(owner, key, (now + self._seconds, answer))


class Cache:
    """Asks other backends for what it does not know.

    Args:
        authn: authenticates.
        authz: authorizes.
        seconds: how long answers are kept.
        refusals: whether refusals are kept, too.
        secret: a random secret, for the hashes of passwords.
        clock: returns seconds, monotonic.
    """

    name = "cache"

    def __init__(
        self,
        authn: Backend,
        authz: Backend,
        seconds: float,
        *,
        refusals: bool,
        secret: bytes,
        clock: Callable[[], float],
    ) -> None:
        self._authn = authn
        self._authz = authz
        self._refusals = refusals
        self._secret = secret
        self._clock = clock
        self._logins = Remembered(seconds, clock)
        self._tags = Remembered(seconds, clock)
        self._decisions = Remembered(seconds, clock)

    async def authenticate(self, claim: Claim) -> Identity:
        """Return who logs in; the other backend is asked unless its answer is known."""
        key = (claim.name, self._hash(claim.password), claim.address)
        answer = self._logins.get(key)
        if isinstance(answer, Identity):
            return answer
        if answer is not None:
            raise Denied(answer)
        try:
            identity = await self._authn.authenticate(claim)
            if self._authz is not self._authn:
                tags = await self._authz.authorize(claim, identity.name)
                identity = replace(identity, tags=(*identity.tags, *tags))
        except Denied as denied:
            if self._refusals and not denied.failed:
                self._logins.put(claim.address, key, denied.why)
            raise
        if not identity.expires:
            # A token says itself how long it is valid.
            self._logins.put(claim.address, key, identity)
        return identity

    async def authorize(self, claim: Claim, name: str) -> tuple[str, ...]:
        """Return the tags of a user; the other backend is asked unless they are known."""
        key = (name, self._hash(claim.password))
        tags: tuple[str, ...] | None = self._tags.get(key)
        if tags is None:
            tags = await self._authz.authorize(claim, name)
            self._tags.put(name, key, tags)
        return tags

    def authority(self, identity: Identity, claim: Claim) -> Authority:
        """Return what decides; only decisions of a remote server are kept."""
        decider = getattr(self._authz, "decider", None)
        if decider is None:
            return self._authz.authority(identity, claim)
        return AskedAuthority(self._cached(identity, decider(identity)), self._clock)

    def _cached(self, identity: Identity, decide: Decide) -> Decide:
        who = (identity.name, identity.tags, identity.address)

        async def decided(question: Question) -> bool | None:
            decision: bool | None = self._decisions.get((who, question))
            if decision is None:
                decision = await decide(question)
                if decision or (self._refusals and decision is not None):
                    self._decisions.put(identity.name, (who, question), decision)
            return decision

        return decided

    def _hash(self, password: str | None) -> bytes:
        if password is None:
            return b""
        return hmac.digest(self._secret, password.encode(), "sha256")
