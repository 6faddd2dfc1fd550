"""The settings of a queue: its arguments merged with its policies.

A setting has the name of its policy key; its argument has the prefix `x-`. Which of two values is
effective depends on the setting and on the queue type, as in RabbitMQ:

    limits and times               the smaller one
    delivery-limit                 the smaller one; -1 is no limit
    overflow of a quorum queue     the policy
    all settings of a stream       the policy
    everything else                the argument
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.model.queue.arguments import QUORUM, STREAM, queue_type
from harebell.model.settings.policy import KEYS, finite

_PREFIX = "x-"
_MIN = frozenset(
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
    """Return the settings of a queue by policy key.

    Args:
        arguments: the checked arguments of its declaration.
        policies: the merged settings of its policy and operator policy.
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
        elif key in _MIN:
            settings[key] = min(settings[key], value)
        elif key == "delivery-limit":
            settings[key] = finite(settings[key], value)
        else:
            settings[key] = value
    return settings
