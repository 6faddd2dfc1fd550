"""The backend `internal`: the users of the broker itself."""

from __future__ import annotations

import asyncio

from harebell.auth.authority import RESOURCE, VHOST, Question
from harebell.auth.users import Claim, Doubt, User, Users
from harebell.server.backends.contract import Denied, Identity


class InternalAuthority:
    """The permissions of a user of the broker, as they are now.

    Args:
        users: the accounts of the broker, with their permissions.
        name: of the user.
    """

    def __init__(self, users: Users, name: str) -> None:
        self._users = users
        self._name = name

    def allows(self, question: Question) -> bool:
        """True if the user has the permission."""
        user = self._users.get(self._name)
        if user is None:
            return False
        if question.about == VHOST:
            return user.opens(question.vhost)
        if question.about == RESOURCE:
            return user.allows(question.vhost, question.permission, question.kind, question.name)
        topics = user.topics(question.vhost, question.name)
        return topics is None or topics.allow(question.permission, question.key)

    def settled(self) -> None:
        """Do nothing: it remembers nothing."""


class InternalBackend:
    """Logs in the users of the broker.

    Args:
        users: the accounts of the broker, with their passwords.
    """

    name = "internal"

    def __init__(self, users: Users) -> None:
        self._users = users

    async def user_of(self, claim: Claim) -> User:
        """Return the user with this password.

        Raises:
            Denied: there is none.
        """
        user = self._users.get(claim.name)
        if user is not None and await self._right(user, claim):
            return user
        raise Denied(f"user '{claim.name}' - invalid credentials")

    async def authenticate(self, claim: Claim) -> Identity:
        """Compare the password."""
        user = await self.user_of(claim)
        return Identity(user.name, user.tags, claim.address)

    async def authorize(self, claim: Claim, name: str) -> tuple[str, ...]:
        """Return the tags of the user."""
        user = self._users.get(name)
        if user is None:
            raise Denied(f"user '{name}' - invalid credentials")
        return user.tags

    def authority(self, identity: Identity, claim: Claim) -> InternalAuthority:
        """Return the permissions of the user."""
        return InternalAuthority(self._users, identity.name)

    async def _right(self, user: User, claim: Claim) -> bool:
        users, password = self._users, claim.password
        if password is None:
            # A certificate names the user.
            return True
        right = users.judged(user, password)
        if right is not None:
            return right
        if users.later is None:
            return users.authenticate(user.name, password, "") is not None
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def settle(found: bool) -> None:
            if not done.done():
                done.set_result(found)

        users.later(Doubt(user, password), claim.address, settle, lambda: not done.done())
        return await done
