"""Refuse a message whose headers are too long for the clients of other versions.

AMQP 0-9-1 has all of them in one frame. Without a limit a consumer there would lose its connection,
and again with each attempt.
"""

from __future__ import annotations

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import Properties, new_message
from harebell.front.convert.dispatch import described
from harebell.front.limits import HEADERS_BYTES


def check_long_headers(properties: Properties) -> None:
    """Refuse properties that are too long; only those above HEADERS_SHORT_BYTES can be.

    Raises:
        Refusal: in the form of AMQP 0-9-1 they have more than HEADERS_BYTES.
    """
    size = len(described(new_message("", "", properties, b"")).raw)
    if size > HEADERS_BYTES:
        raise Refusal(
            ErrorKind.RESOURCE_ERROR,
            f"properties and headers have {size} bytes in AMQP 0-9-1, at most {HEADERS_BYTES} may "
            "be: send long values in the body",
        )
