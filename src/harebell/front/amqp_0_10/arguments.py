"""Translate the declaration arguments of 0-10's clients.

    qpid.max_count              x-max-length
    qpid.max_size               x-max-length-bytes       qpid.group_header_key   x-group-key
    qpid.policy_type            x-overflow               qpid.last_value_queue_key
                                                                                 x-last-value-key
    qpid.last_value_queue       x-last-value-key `qpid.LVQ_key`, and -_no_browse, its older name

    qpid.priorities             N levels: x-max-priority is N - 1, and the argument itself says how
                                priorities are divided among them
    qpid.fairshare, -N          stay: the share of each level, of level N
    qpid.queue_msg_sequence     stays: the header with the number of a message in the queue
    qpid.policy_type            stays beside qpid.priorities: ring drops the least urgent first
    qpid.auto_delete_timeout    stays: seconds that an auto-delete queue may be without consumers

    x-qpid-priorities, x-qpid-fairshare, x-qpid-maximum-message-count, -size       older names
    no-local                    consumers do not get the messages of their own connection

0-10 refuses unknown arguments (exceptions "unknown-argument"). Known are these, and all that
begin with `x-`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.front.amqp_0_10.errors import INVALID_ARGUMENT, NOT_IMPLEMENTED, ExecutionError
from harebell.model.exchange.kind import KEEPS_VALUES
from harebell.model.exchange.kind import SEQUENCE as MESSAGE_NUMBERS
from harebell.model.queue.arguments import (
    LAST_VALUE_ARGUMENTS,
    LAST_VALUE_KEY,
    OLDER_SHARE,
    SEQUENCE,
    SHARE,
    last_value_key,
)
from harebell.model.queue.order.priority import HIGHEST, LEVELS, POLICY_TYPE, RING
from harebell.model.queue.queue import LINGER

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
    "qpid.group_header_key": "x-group-key",
}
_NUMBERS = ("qpid.max_count", "qpid.max_size")
_POLICY = POLICY_TYPE
_POLICIES = {
    RING: "drop-head",
    "ring_strict": "drop-head",
    "reject": "reject-publish",
}
_TIMEOUT = LINGER
_SHARED = "qpid.shared_msg_group"
_MAX_LEVELS = HIGHEST + 1
NO_LOCAL = "no-local"
_KNOWN = "x-"
_OTHERS = (
    *(NO_LOCAL, "alternate-exchange", _POLICY, _TIMEOUT, LEVELS, SEQUENCE),
    *(MESSAGE_NUMBERS, KEEPS_VALUES),
)


def translated(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a queue with the broker's names.

    Raises:
        ExecutionError: a value is not one of the valid ones.
    """
    translated: dict[str, Any] = {}
    limited = False
    for given, value in arguments.items():
        name = _OLDER.get(given, given)
        if name.startswith(OLDER_SHARE):
            name = SHARE + name.removeprefix(OLDER_SHARE)
        if name == _POLICY:
            translated["x-overflow"] = _policy(value)
        elif name == _TIMEOUT:
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ExecutionError(INVALID_ARGUMENT, f"{name}: {value!r}", _ARGUMENTS)
            translated[name] = value
        elif name == LEVELS:
            translated[LEVELS] = _levels(value)
            # At least 1: one level needs no order, and RabbitMQ's argument means that with 1.
            translated["x-max-priority"] = max(1, translated[LEVELS] - 1)
        elif name == _SHARED or name in LAST_VALUE_ARGUMENTS:
            # Groups are always shared: the next message of a key may go to another consumer.
            continue
        else:
            number = name in _NUMBERS or name.startswith(SHARE)
            translated[_SAME.get(name, name)] = _number(value) if number else value
            limited = limited or name in _NUMBERS
    key = last_value_key(arguments)
    if key:
        translated[LAST_VALUE_KEY] = key
    if LEVELS in translated and translated.get("x-overflow") == _POLICIES[RING]:
        translated[_POLICY] = RING
    if limited:
        # Qpid's default; without it the model would drop the oldest messages, as RabbitMQ does.
        translated.setdefault("x-overflow", _POLICIES["reject"])
    return translated


_DIGITS = 20
"""Texts of so many digits are no numbers of AMQP."""


def _number(value: Any) -> Any:
    """Parse a number that is written as text, as Qpid's tools do; return other values unchanged."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _DIGITS:
        return int(value)
    return value


def _levels(value: Any) -> int:
    count = _number(value)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MAX_LEVELS:
        text = f"{LEVELS} is a number from 1 to {_MAX_LEVELS}, not {value!r}"
        raise ExecutionError(INVALID_ARGUMENT, text, _ARGUMENTS)
    return count


def _policy(value: Any) -> str:
    if not isinstance(value, str) or value not in _POLICIES:
        text = f"{_POLICY} is one of {', '.join(_POLICIES)}, not {value!r}"
        raise ExecutionError(INVALID_ARGUMENT, text, _ARGUMENTS)
    return _POLICIES[value]


def check_known(arguments: Mapping[str, Any], field: int, *, names: bool = False) -> None:
    """Refuse unknown arguments.

    Args:
        arguments: of a declaration or a binding.
        field: the number of their field in the command.
        names: whether any name is valid, as for headers.
    """
    if names:
        return
    for name in arguments:
        if not name.startswith((_KNOWN, SHARE)) and name not in _OTHERS:
            raise ExecutionError(NOT_IMPLEMENTED, f"unknown argument '{name}'", field)
