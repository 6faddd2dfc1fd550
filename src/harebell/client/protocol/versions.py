"""Which core speaks which version of AMQP: frames and methods, or segments and commands."""

from __future__ import annotations

from typing import Any

from harebell.client.protocol.core import Connection
from harebell.client.protocol.recovery import Random
from harebell.client.url import FINAL, URL

_NONCE_MOST = 1 << 53


def new_core(url: URL, now: float, properties: dict[str, Any], rng: Random) -> Connection:
    """The protocol state of a new connection.

    Args:
        url: where, as whom, and in which version.
        now: the time.
        properties: added to what the broker is told about us.
        rng: entropy for the names of sessions.
    """
    if url.version != FINAL:
        return Connection(url, now, properties)
    from harebell.client.protocol.core010 import Connection as Final  # its codec takes time to load

    nonce = f"harebell-{int(rng.random() * _NONCE_MOST):014x}"
    core: Any = Final(url, now, properties, nonce)
    final: Connection = core  # the same verbs and attributes, over other frames
    return final
