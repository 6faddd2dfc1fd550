"""The list `auth_backends`: the first entry that accepts a login decides, as in RabbitMQ.

An entry has a backend that authenticates, and one or more that authorize. If they differ, the
latter get the user without a password and all of them have to allow an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harebell.auth.authority import Authority, RemoteUser
from harebell.auth.users import Claim, User, Users
from harebell.management.backends.contract import Backend, Denied, Log, Renewable
from harebell.management.backends.internal import InternalBackend
from harebell.server.background_tasks import BackgroundTasks


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the list.

    Args:
        authn: authenticates.
        authz: authorize.
    """

    authn: Backend
    authz: tuple[Backend, ...]

    @property
    def local(self) -> bool:
        """True if the users of the broker log in with their own permissions."""
        return isinstance(self.authn, InternalBackend) and self.authz == (self.authn,)


class Chain:
    """Logs users in.

    Args:
        entries: the list.
        users: the users of the broker, and who may log in from this machine only.
        log: writes to the log.
        flush: called after an answer, when connections may have output.
    """

    def __init__(
        self,
        entries: tuple[Entry, ...],
        users: Users,
        log: Log,
        flush: Callable[[], None],
    ) -> None:
        self.entries = entries
        self._users = users
        self._log = log
        self._flush = flush
        self._tasks = BackgroundTasks()

    def __call__(
        self, claim: Claim, answered: Callable[[User | None, str], None], wanted: Callable[[], bool]
    ) -> None:
        """Log in a user for a connection; used as `Users.log_in`.

        Args:
            claim: the login.
            answered: called with the user, or None and why not.
            wanted: returns false if the answer is no longer needed.
        """

        async def answer() -> None:
            outcome: tuple[User | None, str]
            try:
                outcome = await self.log_in(claim), ""
            except Denied as denied:
                outcome = None, denied.why
            except Exception as error:  # what a backend cannot handle is no login
                self._log("error", f"the backends of users failed: {type(error).__name__}")
                outcome = None, f"user '{claim.name}' authentication failed with internal error"
            if wanted():
                answered(*outcome)
                self._flush()

        self._tasks.start(answer())

    def close(self) -> None:
        """Drop the logins that wait for an answer."""
        self._tasks.cancel()

    async def log_in(self, claim: Claim) -> User:
        """Return the user that the first accepting entry makes of a login.

        Raises:
            Denied: no entry accepts it; the reason of the last one.
        """
        denied = Denied(f"No modules checked '{claim.name}'")
        for entry in self.entries:
            try:
                return await self._enter(entry, claim)
            except Denied as another:
                denied = another
                if denied.failed:
                    self._log("error", denied.why)
        raise denied

    async def _enter(self, entry: Entry, claim: Claim) -> User:
        if entry.local and isinstance(entry.authn, InternalBackend):
            return await entry.authn.user_of(claim)
        identity = await entry.authn.authenticate(claim)
        tags = list(identity.tags)
        authorities: list[Authority] = []
        for backend in entry.authz:
            if backend is not entry.authn:
                tags += await backend.authorize(claim, identity.name)
            authorities.append(backend.authority(identity, claim))
        return self._made(identity.name, tuple(dict.fromkeys(tags)), authorities, identity.expires)

    def _made(
        self, name: str, tags: tuple[str, ...], authorities: list[Authority], expires: float
    ) -> RemoteUser:
        user = RemoteUser(
            name,
            tags,
            tuple(authorities),
            loopback_only=self._users.is_loopback_only(name),
            expires=expires,
        )
        renewable = [each for each in authorities if isinstance(each, Renewable)]
        if renewable:

            def renew(secret: str, done: Callable[[str], None]) -> None:
                self._tasks.start(self._renew(user, renewable, secret, done))

            user.renew = renew
        return user

    async def _renew(
        self,
        user: RemoteUser,
        renewable: Sequence[Renewable],
        secret: str,
        done: Callable[[str], None],
    ) -> None:
        """Replace the credential of a connection (connection.update-secret)."""
        why = ""
        for each in renewable:
            why = why or await each.renew(secret)
        ends = [each.expires for each in renewable if each.expires]
        user.expires = min(ends, default=0.0)
        done(why)
        self._flush()
