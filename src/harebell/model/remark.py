"""What a consumer says of a message that it gives back or rejects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_NOTHING: Mapping[str, Any] = {}


class Remark(NamedTuple):
    """What a consumer says of one message.

    Args:
        headers: headers that the message gets, and their values.
        condition: why it is rejected, as a symbol of AMQP 1.0; "" for no reason.
        description: the same for people; "" for none.
        failed: whether the rejection is a failed delivery.
    """

    headers: Mapping[str, Any] = _NOTHING
    condition: str = ""
    description: str = ""
    failed: bool = False
