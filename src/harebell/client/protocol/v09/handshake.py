"""The handshake of a connection, from the client's side: capabilities, limits, mechanisms.

    client                                    broker
      |  protocol header "AMQP" 0 0 9 1  ------->  |     AMQP 0-9-1 4.2.2
      |  <-------------------------------  start   |
      |  start-ok (mechanism, response)  ------->  |
      |  <--------------------------------  tune   |
      |  tune-ok, open (vhost)  ---------------->  |
      |  <-----------------------------  open-ok   |

This module only makes decisions; `core` runs the handshake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harebell.base.limits import CHANNEL_MAX, FRAME_MAX_BYTES, FRAME_MIN_BYTES
from harebell.client.errors import AuthenticationFailed, ConnectionFailed, ProtocolMismatch
from harebell.client.url import AMQPLAIN, ANONYMOUS, EXTERNAL, PLAIN, URL
from harebell.wire.v09.fields import encode_table

LOCALE = "en_US"

_METHOD_FRAME = 1
_TLS_RECORDS = (20, 21, 22, 23)
_TABLE_LENGTH = 4


@dataclass(frozen=True)
class TuneLimits:
    """The negotiated limits of connection.tune.

    Args:
        channel_max: highest channel number.
        frame_max: maximum frame size, in bytes.
        heartbeat: seconds, 0 for none.
    """

    channel_max: int
    frame_max: int
    heartbeat: int


def client_properties(url: URL, version: str, extra: dict[str, Any]) -> dict[str, Any]:
    """Return the client properties for connection.start-ok."""
    properties: dict[str, Any] = {
        "product": "harebell",
        "version": version,
        "platform": "Python",
        "copyright": "Copyright the Harebell authors",
        "information": "Licensed under the Apache License 2.0",
        "capabilities": {
            "publisher_confirms": True,
            "exchange_exchange_bindings": True,
            "basic.nack": True,
            "consumer_cancel_notify": True,
            "connection.blocked": True,
            "authentication_failure_close": True,
        },
    }
    if url.name is not None:
        properties["connection_name"] = url.name
    capabilities = {**properties["capabilities"], **extra.get("capabilities", {})}
    return {**properties, **extra, "capabilities": capabilities}


def check_version(url: URL, announced: tuple[int, int], spoken: tuple[int, int]) -> None:
    """Check the version of connection.start; 0-9-1 is announced as 0-9.

    Raises:
        ProtocolMismatch: it is another one, and the connection is closed without a close method
            (AMQP 0-9-1 1.4.2.1).
    """
    if announced != spoken:
        major, minor = announced
        raise ProtocolMismatch(
            f"the broker at {url.address} answered in AMQP {major}-{minor}; "
            f"this client speaks {url.version}"
        )


def choose_mechanism(url: URL, offered: str) -> str:
    """Choose the SASL mechanism.

    Raises:
        AuthenticationFailed: the broker offers no supported mechanism.
    """
    names = offered.split()
    supported = (url.auth_mechanism,) if url.auth_mechanism else (PLAIN, AMQPLAIN)
    for name in supported:
        if name in names:
            return name
    raise AuthenticationFailed(
        f"the broker at {url.address} offers the SASL mechanisms {offered!r}, "
        f"this client would use {' or '.join(supported)}"
    )


def sasl_response(mechanism: str, url: URL) -> bytes:
    """Return the only SASL response of a mechanism."""
    if mechanism == AMQPLAIN:
        # AMQPLAIN is a field table without its length.
        return encode_table({"LOGIN": url.username, "PASSWORD": url.password})[_TABLE_LENGTH:]
    if mechanism in (EXTERNAL, ANONYMOUS):
        # The certificate names the user, or the broker asks for none.
        return b""
    return b"\0" + url.username.encode() + b"\0" + url.password.encode()


def negotiate(url: URL, channel_max: int, frame_max: int, heartbeat: int) -> TuneLimits:
    """Choose limits for the broker's connection.tune (0 is no limit, AMQP 0-9-1 1.4.2.5).

    Raises:
        ConnectionFailed: the broker requires frames below the protocol's minimum.
    """
    if 0 < frame_max < FRAME_MIN_BYTES:
        raise ConnectionFailed(
            f"the broker at {url.address} wants frames of at most {frame_max} octets; "
            f"AMQP allows no limit below {FRAME_MIN_BYTES}"
        )
    ours = FRAME_MAX_BYTES if url.frame_max is None else url.frame_max
    frames = _lower(ours, frame_max) or FRAME_MAX_BYTES
    channels = _lower(url.channel_max or 0, channel_max) or CHANNEL_MAX
    beat = heartbeat
    if url.heartbeat == 0:
        beat = 0
    elif url.heartbeat is not None:
        beat = _lower(url.heartbeat, heartbeat)
    return TuneLimits(channels, frames, beat)


def _lower(one: int, other: int) -> int:
    """Return the smaller of two limits, where 0 is no limit."""
    if one == 0 or other == 0:
        return max(one, other)
    return min(one, other)


def check_greeting(url: URL, data: bytes) -> None:
    """Check the first bytes that a peer sends.

    Raises:
        ProtocolMismatch: they are not the beginning of an AMQP frame; the text says what they
            seem to be.
    """
    if data[:1] == b"A":
        version = ".".join(str(octet) for octet in data[4:8]) or "another version"
        raise ProtocolMismatch(
            f"the broker at {url.address} does not speak AMQP {url.version}; "
            f"it answered with {version}"
        )
    if data[0] in _TLS_RECORDS and not url.tls:
        raise ProtocolMismatch(
            f"the server at {url.address} expects TLS: use amqps:// (its usual port is 5671)"
        )
    if data[0] != _METHOD_FRAME:
        raise ProtocolMismatch(
            f"the server at {url.address} does not speak AMQP; it answered {bytes(data[:16])!r}"
        )
