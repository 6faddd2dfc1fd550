"""Commands for limits of vhosts and users: `harebell limits`. A negative number is no limit."""

from __future__ import annotations

from typing import Any

from harebell.admin.accounts import save_user
from harebell.admin.context import AdminContext, Command, Fields, Refused
from harebell.auth.users import User
from harebell.model.vhost import VHost
from harebell.model.vhost_limits import COMPONENT, MAX_CONNECTIONS, MAX_QUEUES, NAME

MAX_CHANNELS = "max-channels"
_MOST = 2**31
_NONE = -1


class Filter(Fields):
    """Limits of one vhost, of one user, or of all."""

    vhost: str | None = None
    user: str | None = None


class Given(Filter):
    """Limits of a vhost or of a user; what is None stays as it is."""

    max_connections: int | None = None
    max_queues: int | None = None
    max_channels: int | None = None


def _of_vhost(vhost: VHost) -> list[dict[str, Any]]:
    found = {key: vhost.limits.get(key, _NONE) for key in (MAX_CONNECTIONS, MAX_QUEUES)}
    return [
        {"vhost": vhost.name, "user": "", "limit": key, "value": value}
        for key, value in found.items()
        if value >= 0
    ]


def user_limits(user: User) -> dict[str, int]:
    """The limits that a user has."""
    found = {MAX_CONNECTIONS: user.max_connections, MAX_CHANNELS: user.max_channels}
    return {key: value for key, value in found.items() if value >= 0}


def _of_user(user: User) -> list[dict[str, Any]]:
    return [
        {"vhost": "", "user": user.name, "limit": key, "value": value}
        for key, value in user_limits(user).items()
    ]


def list_limits(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Every limit that is set."""
    everything = asked.vhost is None and asked.user is None
    rows = []
    if everything:
        for _, vhost in sorted(context.broker.vhosts.items()):
            rows += _of_vhost(vhost)
        for user in sorted(context.users.all(), key=lambda user: user.name):
            rows += _of_user(user)
    if asked.vhost is not None:
        rows += _of_vhost(context.vhost(asked.vhost))
    if asked.user is not None:
        rows += _of_user(context.user(asked.user))
    return rows


def _either(asked: Filter) -> None:
    if (asked.vhost is None) == (asked.user is None):
        raise Refused("limits are of a vhost or of a user: give one of --vhost and --user")


def set_limits(context: AdminContext, asked: Given) -> list[dict[str, Any]]:
    """Limits from now on; who is in already stays."""
    _either(asked)
    given = {
        MAX_CONNECTIONS: asked.max_connections,
        MAX_QUEUES: asked.max_queues,
        MAX_CHANNELS: asked.max_channels,
    }
    news = {key: value for key, value in given.items() if value is not None}
    if not news:
        raise Refused("no limit is given: give one, such as --max-connections 100")
    for key, value in news.items():
        if not -_MOST < value < _MOST:
            raise Refused(f"{key} is {value}: give a number below 2^31, negative for no limit")
    if asked.vhost is not None:
        return _set_vhost(context, context.vhost(asked.vhost), news)
    assert asked.user is not None, "one of them is given"
    return _set_user(context, context.user(asked.user), news)


def _set_vhost(context: AdminContext, vhost: VHost, news: dict[str, int]) -> list[dict[str, Any]]:
    if MAX_CHANNELS in news:
        raise Refused("a vhost has no max-channels: give --max-connections or --max-queues")
    limits = {key: max(value, _NONE) for key, value in {**vhost.limits, **news}.items()}
    limits = {key: value for key, value in limits.items() if value >= 0}
    about = {"name": NAME, "vhost": vhost.name}
    key = (vhost.name, COMPONENT, NAME)
    if limits:
        vhost.parameters.put(COMPONENT, NAME, limits)
        context.broker.events.parameter("set", key, limits)
        context.broker.events.note("vhost.limits.set", about | limits)
    else:
        vhost.parameters.delete(COMPONENT, NAME)
        context.broker.events.parameter("cleared", key)
        context.broker.events.note("vhost.limits.cleared", about)
    context.log("info", f"the limits of vhost '{vhost.name}' were changed")
    return _of_vhost(vhost)


def _set_user(context: AdminContext, user: User, news: dict[str, int]) -> list[dict[str, Any]]:
    if MAX_QUEUES in news:
        raise Refused("a user has no max-queues: give --max-connections or --max-channels")
    set_user_limits(user, news)
    save_user(user, context.definitions)
    limits = user_limits(user)
    what = "user.limits.set" if limits else "user.limits.cleared"
    context.broker.events.note(what, {"name": NAME, "username": user.name} | limits)
    context.log("info", f"the limits of user '{user.name}' were changed")
    return _of_user(user)


def set_user_limits(user: User, news: dict[str, int]) -> None:
    """Give a user limits, by their names."""
    user.max_connections = max(news.get(MAX_CONNECTIONS, user.max_connections), _NONE)
    user.max_channels = max(news.get(MAX_CHANNELS, user.max_channels), _NONE)


def clear_limits(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """No limits for a vhost or a user."""
    _either(asked)
    if asked.vhost is not None:
        none = {MAX_CONNECTIONS: _NONE, MAX_QUEUES: _NONE}
        return _set_vhost(context, context.vhost(asked.vhost), none)
    assert asked.user is not None, "one of them is given"
    none = {MAX_CONNECTIONS: _NONE, MAX_CHANNELS: _NONE}
    return _set_user(context, context.user(asked.user), none)


COMMANDS = {
    "limits.list": Command(Filter, list_limits),
    "limits.set": Command(Given, set_limits),
    "limits.clear": Command(Filter, clear_limits),
}
