"""The arguments of declarations, where 0-10's users say things in other words.

    qpid.max_count              x-max-length             qpid.priorities         x-max-priority
    qpid.max_size               x-max-length-bytes       qpid.group_header_key   x-group-key
    qpid.policy_type            x-overflow               qpid.auto_delete_timeout (s)  x-expires

    x-qpid-priorities, x-qpid-maximum-message-count, -size                 older names of those
    no-local                    what the connection of a queue's consumer publishes is not for it

0-10 wants unknown arguments refused (exceptions "unknown-argument"). Known are these, and whatever
begins with `x-`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.front.session010.errors import INVALID_ARGUMENT, NOT_IMPLEMENTED, ExecutionError

_ARGUMENTS = 6
"""The place of the field `arguments` in queue.declare."""
_OLDER = {
    "x-qpid-priorities": "qpid.priorities",
    "x-qpid-maximum-message-count": "qpid.max_count",
    "x-qpid-maximum-message-size": "qpid.max_size",
}
_SAME = {
    "qpid.max_count": "x-max-length",
    "qpid.max_size": "x-max-length-bytes",
    "qpid.priorities": "x-max-priority",
    "qpid.group_header_key": "x-group-key",
}
_POLICY = "qpid.policy_type"
_POLICIES = {
    "ring": "drop-head",
    "ring_strict": "drop-head",
    "reject": "reject-publish",
}
_TIMEOUT = "qpid.auto_delete_timeout"
_SHARED = "qpid.shared_msg_group"
_MS = 1000
NO_LOCAL = "no-local"
_KNOWN = "x-"
_OTHERS = (NO_LOCAL, "alternate-exchange")


def translated(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a queue in the broker's words.

    Raises:
        ExecutionError: a value is none of those that there are.
    """
    found: dict[str, Any] = {}
    limited = False
    for given, value in arguments.items():
        name = _OLDER.get(given, given)
        if name == _POLICY:
            found["x-overflow"] = _policy(value)
        elif name == _TIMEOUT:
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ExecutionError(INVALID_ARGUMENT, f"{name}: {value!r}", _ARGUMENTS)
            if value:
                found["x-expires"] = value * _MS
        elif name == _SHARED:
            # Groups are always shared: the next message of a key may go to somebody else.
            continue
        else:
            found[_SAME.get(name, name)] = _number(value) if name in _SAME else value
            limited = limited or name in ("qpid.max_count", "qpid.max_size")
    if limited:
        found.setdefault("x-overflow", _POLICIES["reject"])
    return found


def _number(value: Any) -> Any:
    """A number that may be written as a text, which Qpid's tools do; anything else as it is."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value


def _policy(value: Any) -> str:
    if value not in _POLICIES:
        text = f"{_POLICY} is one of {', '.join(_POLICIES)}, not {value!r}"
        raise ExecutionError(INVALID_ARGUMENT, text, _ARGUMENTS)
    return _POLICIES[value]


def check_known(arguments: Mapping[str, Any], field: int, *, names: bool = False) -> None:
    """Refuse arguments that nobody understands.

    Args:
        arguments: of a declaration or a binding.
        field: where they stand in the command.
        names: whether names of any kind mean something: those of headers.
    """
    if names:
        return
    for name in arguments:
        if not name.startswith(_KNOWN) and name not in _OTHERS:
            raise ExecutionError(NOT_IMPLEMENTED, f"unknown argument '{name}'", field)
