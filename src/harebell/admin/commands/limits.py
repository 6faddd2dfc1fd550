"""Commands for limits of vhosts and users. A negative number is no limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.catalog import LIMITS
from harebell.admin.command import ADMINISTRATOR, Argument, Row
from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.place import EACH_ONCE, EVERYWHERE, HERE
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.model.vhost import VHost

_MAX = 2**31
_NONE = -1
OfVhost = Annotated[str | None, Argument("The vhost.", "NAME")]
OfUser = Annotated[str | None, Argument("The user they are for.", "NAME")]


_COLUMNS = ("vhost", "user", "limit", "value")
"""The columns of a limit, which is of a vhost or of a user."""


def _of_vhost(vhost: VHost) -> list[Row]:
    from harebell.model.settings.vhost_limits import MAX_CONNECTIONS, MAX_QUEUES

    limits = {key: vhost.limits.get(key, _NONE) for key in (MAX_CONNECTIONS, MAX_QUEUES)}
    return [
        {"vhost": vhost.name, "user": "", "limit": key, "value": value}
        for key, value in limits.items()
        if value >= 0
    ]


def _of_user(user: User) -> list[Row]:
    from harebell.admin.accounts import user_limits

    return [
        {"vhost": "", "user": user.name, "limit": key, "value": value}
        for key, value in user_limits(user).items()
    ]


@LIMITS.listing(
    "limits",
    tag=ADMINISTRATOR,
    row=_COLUMNS,
    summary="List all limits that are set, or those of one vhost or user.",
    place=EVERYWHERE,
    merge=EACH_ONCE,
)
def list_limits(
    context: AdminContext, vhost: OfVhost = None, user: OfUser = None
) -> Slices[list[Row]]:
    """List every limit that is set."""
    if vhost is None and user is None:
        return gathered(_all(context))
    rows: list[Row] = []
    if vhost is not None:
        rows += _of_vhost(context.vhost(vhost))
    if user is not None:
        rows += _of_user(context.user(user))
    return gathered(rows)


def _all(context: AdminContext) -> Iterator[Row]:
    for _, each in sorted(context.broker.vhosts.items()):
        yield from _of_vhost(each)
    for who in context.users.by_name():
        yield from _of_user(who)


def _check_either(vhost: str | None, user: str | None) -> None:
    if (vhost is None) == (user is None):
        raise CommandRefused("limits are of a vhost or of a user: give one of --vhost and --user")


@LIMITS.command(verb="set", tag=ADMINISTRATOR, row=_COLUMNS)
def set_limits(
    context: AdminContext,
    vhost: OfVhost = None,
    user: OfUser = None,
    max_connections: Annotated[int | None, Argument("Most connections; -1 for no limit.")] = None,
    max_queues: Annotated[int | None, Argument("Most queues, of a vhost; -1 for no limit.")] = None,
    max_channels: Annotated[
        int | None, Argument("Most channels, of a user; -1 for no limit.")
    ] = None,
) -> list[Row]:
    """Set limits of a vhost or a user; who is in already stays."""
    from harebell.admin.accounts import MAX_CHANNELS
    from harebell.model.settings.vhost_limits import MAX_CONNECTIONS, MAX_QUEUES

    _check_either(vhost, user)
    given = {MAX_CONNECTIONS: max_connections, MAX_QUEUES: max_queues, MAX_CHANNELS: max_channels}
    changes = {key: value for key, value in given.items() if value is not None}
    if not changes:
        raise CommandRefused("no limit is given: give one, such as --max-connections 100")
    for key, value in changes.items():
        if not -_MAX < value < _MAX:
            raise CommandRefused(
                f"{key} is {value}: give a number below 2^31, negative for no limit"
            )
    if vhost is not None:
        return _set_vhost(context, context.vhost(vhost), changes)
    assert user is not None, "one of them is given"
    return _set_user(context, context.user(user), changes)


def _set_vhost(context: AdminContext, vhost: VHost, changes: dict[str, int]) -> list[Row]:
    from harebell.admin.accounts import MAX_CHANNELS
    from harebell.model.settings.vhost_limits import COMPONENT, NAME

    if MAX_CHANNELS in changes:
        raise CommandRefused("a vhost has no max-channels: give --max-connections or --max-queues")
    limits = {key: max(value, _NONE) for key, value in {**vhost.limits, **changes}.items()}
    limits = {key: value for key, value in limits.items() if value >= 0}
    about = {"name": NAME, "vhost": vhost.name}
    key = (vhost.name, COMPONENT, NAME)
    events = context.broker.events
    if limits:
        vhost.parameters.put(COMPONENT, NAME, limits)
        events.parameter("set", key, limits)
        events.note("vhost.limits.set", about | limits)
    else:
        vhost.parameters.delete(COMPONENT, NAME)
        events.parameter("cleared", key)
        events.note("vhost.limits.cleared", about)
    context.log("info", f"the limits of vhost '{vhost.name}' were changed")
    return _of_vhost(vhost)


def _set_user(context: AdminContext, user: User, changes: dict[str, int]) -> list[Row]:
    from harebell.admin.accounts import changing, set_user_limits, user_limits
    from harebell.model.settings.vhost_limits import MAX_QUEUES, NAME

    if MAX_QUEUES in changes:
        raise CommandRefused("a user has no max-queues: give --max-connections or --max-channels")
    with changing(user, context.users, context.definitions):
        set_user_limits(user, changes)
    limits = user_limits(user)
    event = "user.limits.set" if limits else "user.limits.cleared"
    context.broker.events.note(event, {"name": NAME, "username": user.name} | limits)
    context.log("info", f"the limits of user '{user.name}' were changed")
    return _of_user(user)


def _cleared(outcome: Mapping[str, Any]) -> str:
    whose = f"vhost '{outcome['vhost']}'" if "vhost" in outcome else f"user '{outcome['user']}'"
    return f"the limits of {whose} were cleared"


@LIMITS.command(verb="clear", tag=ADMINISTRATOR, row=_COLUMNS, done=_cleared)
def clear_limits(context: AdminContext, vhost: OfVhost = None, user: OfUser = None) -> list[Row]:
    """Take all limits from a vhost or a user."""
    from harebell.admin.accounts import MAX_CHANNELS
    from harebell.model.settings.vhost_limits import MAX_CONNECTIONS, MAX_QUEUES

    _check_either(vhost, user)
    if vhost is not None:
        return _set_vhost(
            context, context.vhost(vhost), {MAX_CONNECTIONS: _NONE, MAX_QUEUES: _NONE}
        )
    assert user is not None, "one of them is given"
    return _set_user(context, context.user(user), {MAX_CONNECTIONS: _NONE, MAX_CHANNELS: _NONE})


# --- over HTTP ------------------------------------------------------------------------------------


def _row_with_value(name: str, kind: str, limits: dict[str, int]) -> list[Row]:
    return [{kind: name, "value": limits}] if limits else []


@LIMITS.over_http(
    "GET /api/vhost-limits",
    "GET /api/vhost-limits/{vhost}: Return the limits of a vhost.",
    tag=ADMINISTRATOR,
    place=EVERYWHERE,
)
def vhost_limits(context: AdminContext, vhost: str | None = None) -> list[Row]:
    """Return the limits of all vhosts that have some."""
    rows: list[Row] = []
    for each in context.vhosts(vhost):
        limits = {row["limit"]: row["value"] for row in _of_vhost(each)}
        rows += _row_with_value(each.name, "vhost", limits)
    return rows


@LIMITS.over_http(
    "GET /api/user-limits",
    "GET /api/user-limits/{user}: Return the limits of a user.",
    tag=ADMINISTRATOR,
    place=HERE,
)
def all_user_limits(context: AdminContext, user: str | None = None) -> list[Row]:
    """Return the limits of all users that have some."""
    from harebell.admin.accounts import user_limits

    users = context.users.by_name() if user is None else [context.user(user)]
    return [row for each in users for row in _row_with_value(each.name, "user", user_limits(each))]


def _change(name: str, value: int, names: tuple[str, ...]) -> dict[str, Any]:
    if name not in names:
        raise CommandRefused(f"the limit '{name}' is unknown: it is one of {', '.join(names)}")
    return {name.replace("-", "_"): value}


@LIMITS.over_http("PUT /api/vhost-limits/{vhost}/{name}", tag=ADMINISTRATOR)
def put_vhost_limit(context: AdminContext, vhost: str, name: str, value: int) -> Row:
    """Set a limit of a vhost; a negative number is no limit."""
    change = _change(name, value, ("max-connections", "max-queues"))
    set_limits(context, vhost, **change)
    return {}


@LIMITS.over_http("DELETE /api/vhost-limits/{vhost}/{name}", tag=ADMINISTRATOR)
def delete_vhost_limit(context: AdminContext, vhost: str, name: str) -> Row:
    """Take a limit from a vhost."""
    return put_vhost_limit(context, vhost, name, -1)


@LIMITS.over_http("PUT /api/user-limits/{user}/{name}", tag=ADMINISTRATOR)
def put_user_limit(context: AdminContext, user: str, name: str, value: int) -> Row:
    """Set a limit of a user; a negative number is no limit."""
    change = _change(name, value, ("max-connections", "max-channels"))
    set_limits(context, None, user, **change)
    return {}


@LIMITS.over_http("DELETE /api/user-limits/{user}/{name}", tag=ADMINISTRATOR)
def delete_user_limit(context: AdminContext, user: str, name: str) -> Row:
    """Take a limit from a user."""
    return put_user_limit(context, user, name, -1)
