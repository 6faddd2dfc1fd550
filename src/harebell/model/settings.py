"""The settings of a queue: what its arguments and the policies that apply to it say together.

A setting has the name of its policy key; the argument for it has that name behind `x-`. Which of
two values holds depends on the setting and on the type of the queue, as with RabbitMQ:

    limits and times               the smaller one
    delivery-limit                 the smaller one; -1 is no limit and yields to any
    overflow of a quorum queue     the policy's
    all settings of a stream       the policy's
    everything else                the argument
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.model.policy import KEYS, finite
from harebell.model.queue.arguments import QUORUM, STREAM, queue_type

_PREFIX = "x-"
_LEAST = frozenset(
    (
        "consumer-timeout",
        "expires",
        "max-in-memory-bytes",
        "max-in-memory-length",
        "max-length",
        "max-length-bytes",
        "message-ttl",
    )
)


def settings_of(arguments: Mapping[str, Any], policies: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a queue by their policy keys.

    Args:
        arguments: of its declaration, checked.
        policies: what its policy and operator policy give together.
    """
    kind = queue_type(arguments)
    settings = dict(policies)
    for name, value in arguments.items():
        key = name.removeprefix(_PREFIX)
        if key == name or key not in KEYS:
            continue
        if key not in settings:
            settings[key] = value
        elif kind == STREAM or (kind == QUORUM and key == "overflow"):
            continue
        elif key in _LEAST:
            settings[key] = min(settings[key], value)
        elif key == "delivery-limit":
            settings[key] = finite(settings[key], value)
        else:
            settings[key] = value
    return settings
