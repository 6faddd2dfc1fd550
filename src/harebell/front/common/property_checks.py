"""Checks of message properties that only few messages need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.users import IMPERSONATOR
from harebell.base.expiration import problem_with
from harebell.front.common.errors import soft
from harebell.wire.v09.content import BasicProperties

if TYPE_CHECKING:
    from harebell.auth.users import User

_PUBLISH = (60, 40)


def check_user_id(claimed: str | None, user: User) -> None:
    """Refuse a user-id that is not the publisher's, unless the user has the tag impersonator."""
    if claimed and claimed != user.name and IMPERSONATOR not in user.tags:
        raise soft(
            406,
            f"user_id property set to '{claimed}' but authenticated user was '{user.name}'",
            *_PUBLISH,
        )


def check_expiration(decoded: BasicProperties) -> None:
    """Refuse an expiration that is not a number of milliseconds."""
    if decoded.expiration is not None:
        reason = problem_with(decoded.expiration)
        if reason:
            raise soft(406, f"invalid expiration '{decoded.expiration}': {reason}", *_PUBLISH)
