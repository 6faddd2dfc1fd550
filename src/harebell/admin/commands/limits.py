"""Commands for limits of vhosts and users. A negative number is no limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harebell.admin.catalog import LIMITS
from harebell.admin.command import ADMINISTRATOR, Argument
from harebell.admin.context import AdminContext, CommandRefused

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.model.vhost import VHost

_MOST = 2**31
_NONE = -1
OfVhost = Annotated[str | None, Argument("The vhost.", "NAME")]
OfUser = Annotated[str | None, Argument("The user they are for.", "NAME")]


class LimitRow(TypedDict):
    """A limit of a vhost or of a user."""

    vhost: str
    user: str
    limit: str
    value: int


def _of_vhost(vhost: VHost) -> list[LimitRow]:
    from harebell.model.settings.vhost_limits import MAX_CONNECTIONS, MAX_QUEUES

    found = {key: vhost.limits.get(key, _NONE) for key in (MAX_CONNECTIONS, MAX_QUEUES)}
    return [
        {"vhost": vhost.name, "user": "", "limit": key, "value": value}
        for key, value in found.items()
        if value >= 0
    ]


def _of_user(user: User) -> list[LimitRow]:
    from harebell.admin.accounts import user_limits

    return [
        {"vhost": "", "user": user.name, "limit": key, "value": value}
        for key, value in user_limits(user).items()
    ]


@LIMITS.listing(
    "limits",
    tag=ADMINISTRATOR,
    row=LimitRow,
    summary="Print all limits that are set, or those of one vhost or user.",
)
def list_limits(
    context: AdminContext, vhost: OfVhost = None, user: OfUser = None
) -> list[LimitRow]:
    """List every limit that is set."""
    rows = []
    if vhost is None and user is None:
        for _, each in sorted(context.broker.vhosts.items()):
            rows += _of_vhost(each)
        for who in sorted(context.users.all(), key=lambda user: user.name):
            rows += _of_user(who)
    if vhost is not None:
        rows += _of_vhost(context.vhost(vhost))
    if user is not None:
        rows += _of_user(context.user(user))
    return rows


def _check_either(vhost: str | None, user: str | None) -> None:
    if (vhost is None) == (user is None):
        raise CommandRefused("limits are of a vhost or of a user: give one of --vhost and --user")


@LIMITS.command(verb="set", tag=ADMINISTRATOR, row=LimitRow)
def set_limits(
    context: AdminContext,
    vhost: OfVhost = None,
    user: OfUser = None,
    max_connections: Annotated[int | None, Argument("Most connections; -1 for no limit.")] = None,
    max_queues: Annotated[int | None, Argument("Most queues, of a vhost; -1 for no limit.")] = None,
    max_channels: Annotated[
        int | None, Argument("Most channels, of a user; -1 for no limit.")
    ] = None,
) -> list[LimitRow]:
    """Set limits of a vhost or a user; who is in already stays."""
    from harebell.admin.accounts import MAX_CHANNELS
    from harebell.model.settings.vhost_limits import MAX_CONNECTIONS, MAX_QUEUES

    _check_either(vhost, user)
    given = {MAX_CONNECTIONS: max_connections, MAX_QUEUES: max_queues, MAX_CHANNELS: max_channels}
    changes = {key: value for key, value in given.items() if value is not None}
    if not changes:
        raise CommandRefused("no limit is given: give one, such as --max-connections 100")
    for key, value in changes.items():
        if not -_MOST < value < _MOST:
            raise CommandRefused(
                f"{key} is {value}: give a number below 2^31, negative for no limit"
            )
    if vhost is not None:
        return _set_vhost(context, context.vhost(vhost), changes)
    assert user is not None, "one of them is given"
    return _set_user(context, context.user(user), changes)


def _set_vhost(context: AdminContext, vhost: VHost, changes: dict[str, int]) -> list[LimitRow]:
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


def _set_user(context: AdminContext, user: User, changes: dict[str, int]) -> list[LimitRow]:
    from harebell.admin.accounts import save_user, set_user_limits, user_limits
    from harebell.model.settings.vhost_limits import MAX_QUEUES, NAME

    if MAX_QUEUES in changes:
        raise CommandRefused("a user has no max-queues: give --max-connections or --max-channels")
    set_user_limits(user, changes)
    save_user(user, context.definitions)
    limits = user_limits(user)
    event = "user.limits.set" if limits else "user.limits.cleared"
    context.broker.events.note(event, {"name": NAME, "username": user.name} | limits)
    context.log("info", f"the limits of user '{user.name}' were changed")
    return _of_user(user)


def _cleared(known: Mapping[str, Any]) -> str:
    whose = f"vhost '{known['vhost']}'" if "vhost" in known else f"user '{known['user']}'"
    return f"the limits of {whose} were cleared"


@LIMITS.command(verb="clear", tag=ADMINISTRATOR, row=LimitRow, done=_cleared)
def clear_limits(
    context: AdminContext, vhost: OfVhost = None, user: OfUser = None
) -> list[LimitRow]:
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
