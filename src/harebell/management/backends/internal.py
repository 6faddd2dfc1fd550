"""The backend `internal`: the users of the broker itself."""

from __future__ import annotations

from harebell.auth.authority import RESOURCE, SOME, VHOST, Question
from harebell.auth.users import Claim, User, Users
from harebell.management.backends.contract import Denied, Identity
from harebell.server.password_verifier import user_with


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
        if question.about == SOME:
            return user.allows_some(question.vhost, question.permission)
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
        if claim.password is not None:
            # Otherwise a certificate names the user.
            user = await user_with(self._users, claim.name, claim.password, claim.address)
        if user is not None:
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
