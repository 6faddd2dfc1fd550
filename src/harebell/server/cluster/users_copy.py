"""The users of a cluster: the owner of store 1 writes them down, other owners take them over.

Permissions are not among them: those live with their vhost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from harebell.admin.accounts import remove_user, save_user, set_user_fields, user_fields
from harebell.auth.users import User, Users
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext


def written(users: Users) -> str:
    """Return all users without their permissions, as JSON; always the same for the same users."""
    found = {user.name: user_fields(user) for user in users.all()}
    return msgspec.json.encode(found, order="deterministic").decode()


def take_over(text: str, context: AdminContext) -> Slices[None]:
    """Make the users of a broker those that were written down; users that are gone lose everything.

    Args:
        text: what `written` has returned in the owner of store 1; "" if it has not written yet.
        context: the broker.

    Raises:
        StoreError: the text is damaged.
    """
    if not text:
        return
    users, definitions = context.users, context.definitions
    wanted: dict[str, dict[str, Any]] = msgspec.json.decode(text)
    for user in users.all():
        if user.name not in wanted:
            remove_user(context, user)
            yield None
    for name, fields in wanted.items():
        yield None
        known = users.get(name)
        if known is not None and user_fields(known) == fields:
            continue
        user = User(name, "") if known is None else known
        set_user_fields(user, fields)
        users.put(user)
        save_user(user, definitions)
