"""Find the user of a request: HTTP Basic, or the token of OAuth 2.

Slow password hashes are compared in the thread that also compares those of AMQP logins. Refused
logins are counted by address and user, those of AMQP included. After too many of them passwords
wait for each other as over AMQP (`harebell.front.common.password_guesses`): 429 if too many wait.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from harebell.auth.users import Claim, is_loopback
from harebell.front.common.password_guesses import TooManyGuesses
from harebell.management.http.errors import HttpError, not_authenticated
from harebell.server.password_verifier import user_with

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.auth.users import User

_REFUSED = "Login failed"
_PROTOCOL = "http"
_T = TypeVar("_T")


class Logins:
    """Authenticates requests.

    Args:
        context: the broker with its users.
        only_tokens: whether HTTP Basic is refused.
    """

    def __init__(self, context: AdminContext, *, only_tokens: bool = False) -> None:
        self._context = context
        self._only_tokens = only_tokens
        self._attempts = context.login_attempts

    async def user_of(self, authorization: str | None, address: str) -> User:
        """Return the user of a request.

        Args:
            authorization: the header; None if there is none.
            address: the address of the client.

        Raises:
            HttpError: 401, the login is missing or wrong.
        """
        if authorization is None:
            raise not_authenticated(_REFUSED)
        scheme, _, credentials = authorization.partition(" ")
        # Schemes are compared without regard to case (RFC 9110 11.1).
        if scheme.lower() == "bearer":
            if not self._context.users.tokens:
                raise not_authenticated("OAuth 2 tokens are not configured: log in with HTTP Basic")
            name, password = "", credentials.strip()
        elif scheme.lower() == "basic" and not self._only_tokens:
            name, password = _decoded(credentials)
        elif scheme.lower() == "basic":
            raise not_authenticated("HTTP Basic is disabled: send an OAuth 2 token")
        else:
            raise not_authenticated(f"the scheme {scheme[:20]!r} is unknown: use HTTP Basic")
        guesses = self._context.registry.handshake_throttle.guesses
        await self._wait_for_turn(address, name, password)
        user = await self._user_of(name, password, address)
        if user is None:
            self._refuse(name, address)
            raise not_authenticated(_REFUSED)
        # After the password: else everybody could find out which names are users. And a right
        # password is no guess, so it is not counted.
        if not self._context.users.admits(user, address):
            self._attempts.count(_PROTOCOL, address, user.name, succeeded=False)
            raise not_authenticated("User can only log in via localhost")
        self._attempts.count(_PROTOCOL, address, user.name, succeeded=True)
        guesses.accepted(address, name)
        return user

    async def _wait_for_turn(self, address: str, name: str, password: str) -> None:
        """Wait until a password from an address may be compared.

        Raises:
            HttpError: 429, too many of them wait.
        """
        context = self._context
        guesses = context.registry.handshake_throttle.guesses
        right = context.users.was_right(name, password)
        try:
            seconds = guesses.wait(address, name, context.clock(), right=right)
        except TooManyGuesses as error:
            after = (("retry-after", str(error.seconds)),)
            raise HttpError(429, "too_many_requests", str(error), after) from None
        if seconds:
            await asyncio.sleep(seconds)

    async def _user_of(self, name: str, password: str, address: str) -> User | None:
        """Return the user with this password; None if there is none."""
        users = self._context.users
        if users.log_in is not None:
            login: asyncio.Future[User | None] = asyncio.get_running_loop().create_future()
            settle = _settle(login)
            users.log_in(
                Claim(name, password, address),
                lambda user, _why: settle(user),
                lambda: not login.done(),
            )
            return await login
        return await user_with(users, name, password, address)

    def _refuse(self, name: str, address: str) -> None:
        """Count a refused login; log it, unless there were too many."""
        context = self._context
        self._attempts.count(_PROTOCOL, address, name, succeeded=False)
        guesses = context.registry.handshake_throttle.guesses
        if guesses.refused(address, name, context.clock(), context.log):
            return
        where = "this machine" if is_loopback(address) else address
        context.log("warning", f"HTTP login refused: user '{name}' from {where}")


def _settle(done: asyncio.Future[_T]) -> Callable[[_T], None]:
    def settle(answer: _T) -> None:
        # Cancelled, if its request ended while the password was compared.
        if not done.done():
            done.set_result(answer)

    return settle


def _decoded(credentials: str) -> tuple[str, str]:
    """Decode the user and the password of HTTP Basic."""
    try:
        # At the first colon: a password may have more of them (RFC 7617 2).
        name, separator, password = b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise not_authenticated("the header authorization is not base64 of user:password") from None
    if not separator:
        raise not_authenticated("the header authorization has no password")
    return name, password
