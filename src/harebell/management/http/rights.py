"""Check what a user may do over HTTP, by the user's tags and permissions in vhosts.

The tags are RabbitMQ's. `administrator` may do everything, `monitoring` and `policymaker` also what
`management` may. A command on one vhost needs permissions there: for reading, `monitoring` and
`administrator` do without.

A command that is run by its name (`/api/admin/queues.purge`) needs the rights of its own routes. A
command without a route shows or changes what no other route does, so that it needs `monitoring` to
list and `administrator` for everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.admin.command import ADMINISTRATOR, ANYBODY, MANAGEMENT, MONITORING, POLICYMAKER
from harebell.management.http.errors import not_authorised

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.auth.users import User
    from harebell.model.broker import Broker

MANAGERS = frozenset((MANAGEMENT, POLICYMAKER, MONITORING, ADMINISTRATOR))
ALLOWED = {
    ANYBODY: MANAGERS,
    MANAGEMENT: MANAGERS,
    MONITORING: frozenset((MONITORING, ADMINISTRATOR)),
    POLICYMAKER: frozenset((POLICYMAKER, ADMINISTRATOR)),
    ADMINISTRATOR: frozenset((ADMINISTRATOR,)),
}
"""The tags with which a user may run a command, by the tag of the command."""
_REASONS = {
    MONITORING: "Not monitor user",
    POLICYMAKER: "Not policymaker user",
    ADMINISTRATOR: "Not administrator user",
}
_READING_VERBS = ("list", "counters", "figures")


def check_rights(
    user: User,
    command: Command,
    arguments: dict[str, Any],
    broker: Broker,
    *,
    reads: bool = False,
) -> None:
    """Refuse a command by its name that the user may not run.

    Args:
        user: the user who has logged in.
        command: the command that the request names.
        arguments: those of the command.
        broker: the vhosts.
        reads: whether the command came to a route that only reads.

    Raises:
        HttpError: 401.
    """
    check_tags(user, command)
    lists = command.verb in _READING_VERBS
    if not command.http:
        check_tag(user, MONITORING if lists else ADMINISTRATOR)
    vhost = arguments.get("vhost")
    if isinstance(vhost, str):
        check_vhost(user, command, vhost, broker, reads=reads or lists)


def check_tags(user: User, command: Command) -> None:
    """Refuse a user without a tag for a command.

    Raises:
        HttpError: 401.
    """
    # First, also for commands that any manager may run: a user of AMQP alone has no tag, and no
    # API.
    if not MANAGERS.intersection(user.tags):
        raise not_authorised("Not management user")
    check_tag(user, command.tag)


def check_tag(user: User, tag: str) -> None:
    """Refuse a user without the rights of a tag.

    Raises:
        HttpError: 401.
    """
    if not ALLOWED[tag].intersection(user.tags):
        raise not_authorised(_REASONS[tag])


def check_vhost(user: User, command: Command, vhost: str, broker: Broker, *, reads: bool) -> None:
    """Refuse a command on a vhost that the user may not see, or not open.

    Args:
        user: who has logged in.
        command: what is asked for, with the tag that it needs.
        vhost: the name of the vhost; a missing one is left to the command.
        broker: where the vhost is, or is not.
        reads: whether the command only reads.

    Raises:
        HttpError: 401.
    """
    if command.tag == ADMINISTRATOR or vhost not in broker.vhosts or user.opens(vhost):
        return
    # As in RabbitMQ: `monitoring` and `administrator` see all vhosts, and change only those that
    # they may open.
    if not (reads and ALLOWED[MONITORING].intersection(user.tags)):
        raise not_authorised("User not authorised to access virtual host")
