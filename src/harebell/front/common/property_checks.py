"""Checks of message properties that only few messages need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.common.errors import soft
from harebell.wire.v09.content import BasicProperties

if TYPE_CHECKING:
    from harebell.auth.users import User

_PUBLISH = (60, 40)
_EXPIRATION_MAX_MS = 315_360_000_000
"""Ten years."""


def check_user_id(decoded: BasicProperties, user: User) -> None:
    """Refuse a user-id that is not the publisher's, unless the user has the tag impersonator."""
    if decoded.user_id and decoded.user_id != user.name and "impersonator" not in user.tags:
        raise soft(
            406,
            f"user_id property set to '{decoded.user_id}' but authenticated user was '{user.name}'",
            *_PUBLISH,
        )


def check_expiration(decoded: BasicProperties) -> None:
    """Refuse an expiration that is not a number of milliseconds."""
    if decoded.expiration is not None:
        reason = _bad_expiration(decoded.expiration)
        if reason:
            raise soft(406, f"invalid expiration '{decoded.expiration}': {reason}", *_PUBLISH)


def _bad_expiration(text: str) -> str:
    """Return the reason to refuse an expiration; "" if it is valid."""
    digits = text[1:] if text[:1] in "+-" else text
    count = len(digits) - len(digits.lstrip("0123456789"))
    if not digits.isascii() or count == 0:
        return "no_integer"
    if count < len(digits):
        return f'{{leftover_string,"{digits[count:]}"}}'
    value = int(text)
    if value < 0:
        return f"{{value_negative,{value}}}"
    if value > _EXPIRATION_MAX_MS:
        return f"{{value_too_large,{value}}}"
    return ""
