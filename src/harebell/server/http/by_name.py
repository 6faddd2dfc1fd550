"""Run a command by its name over HTTP, for `harebell --server`.

    POST /api/admin/queues.purge      {"name": "jobs", "vhost": "/"}      ->  200 and the answer

The fields are those of the control socket, and so is their check. Rights are those of the command's
own routes. A command without a route shows or changes what no other route does, so that it needs
`monitoring` to list and `administrator` for everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from harebell.admin.command import ADMINISTRATOR, MONITORING
from harebell.server.http.errors import bad_request, not_found
from harebell.server.http.rights import check_tag, check_tags, check_vhost
from harebell.server.sliced_json import decoded

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.auth.users import User
    from harebell.base.slices import Slices
    from harebell.model.broker import Broker

PREFIX = ["api", "admin"]
"""The first segments of the paths."""
_READING_VERBS = ("list", "counters", "figures")


def is_by_name(method: str, segments: list[str]) -> bool:
    """Whether a request runs a command by its name."""
    return method == "POST" and len(segments) == len(PREFIX) + 1 and segments[:-1] == PREFIX


def command_of(segments: list[str]) -> Command:
    """Return the command of a path.

    Raises:
        HttpError: 404, there is no such command.
    """
    from harebell.admin.catalog import find

    command = find(segments[-1])
    if command is None:
        raise not_found(f"there is no command {segments[-1]!r}")
    return command


def arguments_of(command: Command, body: bytes) -> Slices[dict[str, Any]]:
    """Return the arguments of a command, checked.

    Raises:
        HttpError: 400, the body is not an object, or a field is missing, unknown or wrong.
    """
    try:
        fields = yield from decoded(body or b"{}")
        if not isinstance(fields, dict):
            raise bad_request("not_json: the body is not a JSON object")
        return command.arguments_of(fields)
    except (msgspec.ValidationError, RecursionError) as error:
        raise bad_request(f"{command.name}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"not_json: the body is not JSON: {error}") from None


def check_rights(
    user: User,
    command: Command,
    arguments: dict[str, Any],
    broker: Broker,
    *,
    reads: bool = False,
) -> None:
    """Refuse a command that the user may not run.

    Args:
        user: who has logged in.
        command: what is asked for.
        arguments: those of the command.
        broker: the vhosts.
        reads: whether it came to a route that only reads.

    Raises:
        HttpError: 401.
    """
    check_tags(user, command)
    by_name = command.verb in _READING_VERBS
    if not command.http:
        check_tag(user, MONITORING if by_name else ADMINISTRATOR)
    reads = reads or by_name
    vhost = arguments.get("vhost")
    if isinstance(vhost, str):
        check_vhost(user, command, vhost, broker, reads=reads)
