"""Find the user of a request: HTTP Basic, or the token of OAuth 2.

Slow password hashes are compared in the thread that also compares those of AMQP logins. Refused
logins are counted by address and user. After too many of them, a refusal is delayed.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from harebell.auth.users import Claim, Doubt, is_loopback
from harebell.base.limits import HTTP_REFUSED_SECONDS
from harebell.server.http.errors import not_authenticated

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
        user = await self._found(name, password, address)
        if user is None:
            await self._refuse(name, address)
            raise not_authenticated(_REFUSED)
        if not self._context.users.admits(user, address):
            self._attempts.count(_PROTOCOL, address, user.name, succeeded=False)
            raise not_authenticated("User can only log in via localhost")
        self._attempts.count(_PROTOCOL, address, user.name, succeeded=True)
        return user

    async def _found(self, name: str, password: str, address: str) -> User | None:
        """Return the user with this password; None if there is none."""
        users = self._context.users
        if users.log_in is not None:
            asked: asyncio.Future[User | None] = asyncio.get_running_loop().create_future()
            settle = _settle(asked)
            users.log_in(
                Claim(name, password, address),
                lambda user, _why: settle(user),
                lambda: not asked.done(),
            )
            return await asked
        user = users.get(name)
        return user if user is not None and await self._is_right(user, password, address) else None

    async def _is_right(self, user: User, password: str, address: str) -> bool:
        users = self._context.users
        right = users.judged(user, password)
        if right is not None:
            return right
        if users.later is None:
            return users.authenticate(user.name, password, "") is not None
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        users.later(Doubt(user, password), address, _settle(done), lambda: not done.done())
        return await done

    async def _refuse(self, name: str, address: str) -> None:
        """Count a refused login; wait if there were too many."""
        context = self._context
        self._attempts.count(_PROTOCOL, address, name, succeeded=False)
        throttle = context.registry.handshake_throttle
        if throttle.refused(address, name, context.clock(), context.log):
            await asyncio.sleep(HTTP_REFUSED_SECONDS)
            return
        where = "this machine" if is_loopback(address) else address
        context.log("warning", f"HTTP login refused: user '{name}' from {where}")


def _settle(done: asyncio.Future[_T]) -> Callable[[_T], None]:
    def settle(answer: _T) -> None:
        if not done.done():
            done.set_result(answer)

    return settle


def _decoded(credentials: str) -> tuple[str, str]:
    """Decode the user and the password of HTTP Basic."""
    try:
        name, separator, password = b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise not_authenticated("the header authorization is not base64 of user:password") from None
    if not separator:
        raise not_authenticated("the header authorization has no password")
    return name, password
