"""Between encoded properties and what the model asks of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.message import Properties
from harebell.wire.v09.content import decode_properties


def headers_of(properties: Properties) -> Mapping[str, Any]:
    """The decoded header table; empty when there is none."""
    return decode_properties(properties.raw).headers or {}
