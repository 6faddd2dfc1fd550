"""`connect`: the way to a connection."""

from __future__ import annotations

import ssl
from typing import Any

from harebell.client.blocking.connection import Connection
from harebell.client.options import options
from harebell.client.protocol.recovery import Recovery
from harebell.client.protocol.v09.core import Random
from harebell.client.url import URL


def connect(
    url: str | URL = "amqp://",
    *,
    version: str | None = None,
    recover: bool | Recovery = False,
    rng: Random | None = None,
    properties: dict[str, Any] | None = None,
    call_timeout: float | None = None,
    background_heartbeats: bool = False,
    ssl_context: ssl.SSLContext | None = None,
    wait: float | None = None,
) -> Connection:
    """Connect to a broker; the connection is a context manager that closes itself.

    Args:
        url: the address, amqp:// or amqps:// (`harebell.client.url`).
        version: version of AMQP, "0-8" for example, in place of that of the address.
        recover: try several times to connect, reconnect when the connection is lost, and restore
            what was declared; a `Recovery` says how.
        rng: randomness for the jitter of the delays between attempts.
        properties: added to the client properties.
        call_timeout: seconds after which a call without an answer raises `CallTimeout`.
        background_heartbeats: send heartbeats in a thread between calls.
        ssl_context: TLS settings, instead of the parameters of an amqps:// address.
        wait: seconds to go on trying while the broker cannot be reached, because it starts. A
            refused login is not tried again.

    Raises:
        URLError: the address is invalid.
        ConnectionFailed: no connection could be opened.
    """
    given = options(url, version, recover, rng, properties, ssl_context, wait)
    return Connection(
        *given, call_timeout=call_timeout, background_heartbeats=background_heartbeats
    )
