r"""Read the PROXY header, with which a load balancer says whose connection it passes on.

Version 1 is a line of ASCII, with at most 107 octets:

    PROXY TCP4 192.0.2.7 203.0.113.1 35646 5672\r\n

Version 2 is binary:

    +----------------+---------------+--------+--------+-----------------------+------+
    | signature (12) | version, kind | family | length | addresses and ports   | TLVs |
    +----------------+---------------+--------+--------+-----------------------+------+
      12 octets        1               1        2        12 (IPv4) or 36 (IPv6)

With `PROXY UNKNOWN`, kind 0 (LOCAL) and other families the load balancer itself is the peer: this
is how it checks whether a broker is alive.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
from typing import NamedTuple

from harebell.base.errors import HarebellError

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
"""The first octets of version 2, which no version of AMQP begins with."""
V1_BYTES_MAX = 107
V2_BYTES_MAX = 2048
"""Most octets of addresses and extensions; HAProxy sends less than 600."""
_V1 = b"PROXY "
_V2_HEAD = struct.Struct("!BBH")
_VERSION_2 = 0x20
_LOCAL, _PROXY = 0, 1
_PORTS = struct.Struct("!HH")
_FAMILIES = {0x11: 4, 0x21: 16}
"""TCP over IPv4 and IPv6: the octets of an address."""
_V1_FAMILIES = {b"TCP4": 4, b"TCP6": 6}
_V1_PARTS = 6
_PORT_DIGITS = 5
_PORT_MAX = 65_535

Address = tuple[str, int]


class ProxyHeaderError(HarebellError):
    """What a connection begins with is no PROXY header; the text says why."""


class Proxied(NamedTuple):
    """The addresses of the connection that a load balancer passes on.

    Args:
        there: address and port of the client.
        own: address and port that the client has connected to.
    """

    there: Address
    own: Address


async def read_proxy_header(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> Proxied | None:
    """Read the header from a non-blocking socket, and nothing that follows it.

    Returns:
        the addresses in it; None if the load balancer itself is the peer.

    Raises:
        ProxyHeaderError: there is no header, or it is wrong.
        OSError: the socket failed.
    """
    start = await _exactly(loop, sock, len(SIGNATURE))
    if start == SIGNATURE:
        version_kind, family, length = _V2_HEAD.unpack(await _exactly(loop, sock, _V2_HEAD.size))
        if length > V2_BYTES_MAX:
            raise ProxyHeaderError(f"it has {length} bytes of addresses and extensions")
        return parse_v2(version_kind, family, await _exactly(loop, sock, length))
    if not start.startswith(_V1):
        raise ProxyHeaderError("the connection does not begin with one")
    line = bytearray(start)
    while not line.endswith(b"\r\n"):
        if len(line) >= V1_BYTES_MAX:
            raise ProxyHeaderError(f"no line end in {V1_BYTES_MAX} bytes")
        # One at a time: what follows the line belongs to AMQP or TLS.
        line += await _exactly(loop, sock, 1)
    return parse_v1(bytes(line[:-2]))


def parse_v1(line: bytes) -> Proxied | None:
    """Parse the line of version 1, without its end.

    Raises:
        ProxyHeaderError: it is wrong.
    """
    parts = line.split(b" ")
    if len(parts) > 1 and parts[1] == b"UNKNOWN":
        return None
    if len(parts) != _V1_PARTS or parts[1] not in _V1_FAMILIES:
        raise ProxyHeaderError("it is no line such as PROXY TCP4 192.0.2.7 203.0.113.1 35646 5672")
    family = _V1_FAMILIES[parts[1]]
    there, own = (_address(part, family) for part in parts[2:4])
    there_port, own_port = (_port(part) for part in parts[4:6])
    return Proxied((there, there_port), (own, own_port))


def parse_v2(version_kind: int, family: int, rest: bytes) -> Proxied | None:
    """Parse what follows the signature of version 2.

    Args:
        version_kind: the octet with version and kind.
        family: the octet with address family and transport.
        rest: addresses, ports and extensions.

    Raises:
        ProxyHeaderError: it is wrong.
    """
    kind = version_kind ^ _VERSION_2
    if kind not in (_LOCAL, _PROXY):
        raise ProxyHeaderError(f"its version and kind are 0x{version_kind:02x}")
    if kind == _LOCAL or family not in _FAMILIES:
        return None
    size = _FAMILIES[family]
    if len(rest) < 2 * size + _PORTS.size:
        raise ProxyHeaderError(f"it has {len(rest)} bytes of addresses, too few")
    there, own = (str(ipaddress.ip_address(rest[at : at + size])) for at in (0, size))
    there_port, own_port = _PORTS.unpack_from(rest, 2 * size)
    return Proxied((there, there_port), (own, own_port))


def _address(text: bytes, version: int) -> str:
    try:
        ip_address = ipaddress.ip_address(text.decode("ascii"))
    except ValueError:
        ip_address = None
    if ip_address is None or ip_address.version != version or b"%" in text:
        raise ProxyHeaderError(f"{text!r} is no address of IPv{version}")
    return str(ip_address)


def _port(text: bytes) -> int:
    if not text.isdigit() or len(text) > _PORT_DIGITS or int(text) > _PORT_MAX:
        raise ProxyHeaderError(f"{text!r} is no port")
    return int(text)


async def _exactly(loop: asyncio.AbstractEventLoop, sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = await loop.sock_recv(sock, count - len(data))
        if not more:
            raise ProxyHeaderError("the peer closed the connection before its end")
        data += more
    return data
