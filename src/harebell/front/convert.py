"""Between messages as they came and what the model asks of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.message import Message
from harebell.wire.v09.content import decode_properties


def headers_of(message: Message) -> Mapping[str, Any]:
    """The decoded header table; empty when there is none."""
    return decode_properties(message.raw).headers or {}
