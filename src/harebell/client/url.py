r"""amqp:// and amqps:// addresses: where to connect, as whom, and how.

    amqp://...   0-9-1      amqp+0-8://...   0-8       amqps+0-9://...   0-9 over TLS
                            amqp+1.0://...   1.0

    amqps://alice:s%2Fcret@broker.example:5671/orders%2Feu?heartbeat=30&name=billing
    \___/   \___/ \______/ \____________/ \__/ \_________/ \_______________________/
    scheme  user  password      host      port    vhost         parameters

Percent-encoding, the defaults and the parameters are those of RabbitMQ's URI specification, also
in this case: no path at all is the virtual host `/`, while a bare trailing slash is the virtual
host with the empty name.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote_to_bytes

from harebell.base.limits import FRAME_MIN_BYTES, NAME_BYTES

PORT = 5672
TLS_PORT = 5671
PLAIN = "PLAIN"
AMQPLAIN = "AMQPLAIN"
ANONYMOUS = "ANONYMOUS"
EXTERNAL = "EXTERNAL"
VERIFY_PEER = "verify_peer"
VERIFY_NONE = "verify_none"

VERSIONS = ("0-8", "0-9", "0-9-1", "0-10", "0-10t", "1-0")
"""Versions of AMQP that the client supports."""
NEWEST = "0-9-1"
"""The version of an address that names none."""
FINAL = "0-10"
LAST = "1-0"
"""AMQP 1.0, which is written with a point as well."""
_PROTOCOLS = ("amqp", "amqps")
_SHORT_MAX = 0xFFFF
_LONG_MAX = 0xFFFF_FFFF


class URLError(ValueError):
    """An invalid address; the text names the part, never the password."""


@dataclass(frozen=True)
class URL:
    """A parsed address.

    Args:
        host: name or address, without brackets.
        port: TCP port.
        username: user to log in as.
        password: the user's password; never printed.
        vhost: virtual host.
        tls: whether the connection is encrypted.
        heartbeat: seconds, 0 for none, None for the broker's value.
        connection_timeout: seconds for connecting and the handshake together.
        channel_max: maximum number of channels, None for the broker's value.
        frame_max: maximum frame size, in bytes, None for the broker's value.
        auth_mechanism: PLAIN, AMQPLAIN, EXTERNAL or ANONYMOUS; None prefers PLAIN.
        name: name of the connection, as shown in management.
        cacertfile: PEM file of the authorities to trust instead of the system's.
        certfile: PEM file of our own certificate.
        keyfile: PEM file of its key.
        verify: verify_peer, or verify_none together with `insecure`.
        insecure: disables the verification of the broker's certificate, with a warning.
        server_name_indication: the name to send and to verify instead of `host`.
        version: of AMQP, for example "0-8".
        descriptor: of a connected socket that is used instead of `host` and `port`.
    """

    host: str = "localhost"
    port: int = PORT
    username: str = "guest"
    password: str = "guest"  # noqa: S105 - AMQP's well-known default user
    vhost: str = "/"
    tls: bool = False
    heartbeat: int | None = None
    connection_timeout: float = 10.0
    channel_max: int | None = None
    frame_max: int | None = None
    auth_mechanism: str | None = None
    name: str | None = None
    cacertfile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    verify: str = VERIFY_PEER
    insecure: bool = False
    server_name_indication: str | None = None
    version: str = NEWEST
    descriptor: int | None = None

    def __post_init__(self) -> None:
        if self.version == "1.0":
            object.__setattr__(self, "version", LAST)
        check_version(self.version)
        if self.verify == VERIFY_NONE and not self.insecure:
            raise URLError(
                "verify=verify_none turns off the check of the broker's certificate: "
                "add insecure=true if that is really meant"
            )
        if (self.certfile is None) and (self.keyfile is not None):
            raise URLError("keyfile is given without certfile: the key needs its certificate")

    @property
    def address(self) -> str:
        """Host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def login(self) -> str:
        """The user and the address, for errors."""
        user = f"user {self.username!r} " if self.username else ""
        return f"{user}at {self.address}"

    def __str__(self) -> str:
        scheme = "amqps" if self.tls else "amqp"
        if self.version != NEWEST:
            scheme += f"+{shown(self.version)}"
        return f"{scheme}://{self.username}:***@{self.address} vhost {self.vhost!r}"

    def __repr__(self) -> str:
        return f"<URL {self}>"

    @classmethod
    def of(cls, url: str | URL, version: str | None = None) -> URL:
        """Return a URL for a URL or a text; `version` overrides that of the address.

        Raises:
            URLError: a part is invalid; the text says how to correct it.
        """
        address = url if isinstance(url, URL) else cls.parse(url)
        return address if version is None else replace(address, version=version)

    @classmethod
    def parse(cls, text: str) -> URL:
        """Parse an address.

        Raises:
            URLError: a part is invalid; the text says how to correct it.
        """
        scheme, separator, rest = text.strip().partition("://")
        protocol, plus, version = scheme.lower().partition("+")
        if not separator or protocol not in _PROTOCOLS:
            shown = scheme if separator else "no scheme"
            raise URLError(
                f"an AMQP address begins with amqp:// or amqps:// (found {shown!r}), "
                "for example amqp://guest:guest@localhost:5672/%2F"
            )
        if "#" in rest:
            raise URLError("an AMQP address has no '#' part: write '#' as %23")
        tls = protocol == "amqps"
        rest, _, query = rest.partition("?")
        authority, slash, path = rest.partition("/")
        fields: dict[str, Any] = {"tls": tls, "version": version if plus else NEWEST}
        _read_authority(authority, tls, fields)
        if slash:
            fields["vhost"] = _vhost(path)
        if query:
            _read_parameters(query, tls, fields)
        return cls(**fields)


def shown(version: str) -> str:
    """Return a version as users write it: 1.0 has a point."""
    return "1.0" if version == LAST else version


def check_version(version: str) -> None:
    """Check that the client supports a version.

    Raises:
        URLError: it does not; the text lists the supported ones.
    """
    if version not in VERSIONS:
        raise URLError(f"AMQP {version!r} is unknown: use {', '.join(VERSIONS)}")


def _read_authority(authority: str, tls: bool, fields: dict[str, Any]) -> None:
    userinfo, separator, address = authority.rpartition("@")
    if separator:
        if "@" in userinfo:
            raise URLError("an '@' inside the user name or password must be written as %40")
        user, colon, password = userinfo.partition(":")
        if ":" in password:
            raise URLError("a ':' inside the password must be written as %3A")
        fields["username"] = _decode(user, "user name")
        # A user without a password does not get the default user's password.
        fields["password"] = _decode(password, "password", secret=True) if colon else ""
    host, port = _split_port(address)
    if host:
        fields["host"] = host
    fields["port"] = port if port is not None else (TLS_PORT if tls else PORT)


def _split_port(place: str) -> tuple[str, int | None]:
    if place.startswith("["):
        host, bracket, tail = place[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise URLError(f"the IPv6 address in {place!r} is not closed by ']'")
        return host, _port(tail[1:]) if tail else None
    host, colon, port = place.partition(":")
    if ":" in port:
        raise URLError(f"an IPv6 address stands in brackets: [{place}]")
    return _decode(host, "host"), _port(port) if colon else None


def _port(text: str) -> int | None:
    if text == "":
        return None
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= _SHORT_MAX:
        raise URLError(f"port {text!r} is not a number from 1 to 65535")
    return int(text)


def _vhost(path: str) -> str:
    if "/" in path:
        raise URLError(f"a '/' inside the virtual host must be written as %2F (path /{path})")
    vhost = _decode(path, "virtual host")
    if len(vhost.encode()) > NAME_BYTES:
        raise URLError(f"the virtual host has more than {NAME_BYTES} bytes")
    return vhost


def _decode(text: str, part: str, *, secret: bool = False) -> str:
    shown = "" if secret else f" {text!r}"
    percent = text.find("%")
    while percent >= 0:
        if len(text[percent + 1 : percent + 3]) < 2 or not _is_hex(text[percent + 1 : percent + 3]):
            raise URLError(f"the {part}{shown} has a '%' without two hex digits: write %25")
        percent = text.find("%", percent + 1)
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise URLError(f"the {part}{shown} is not UTF-8 after percent-decoding") from None


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789abcdefABCDEF" for letter in text)


def _whole(low: int, high: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        if not (value.isascii() and value.isdigit()) or not low <= int(value) <= high:
            raise URLError(f"{name}={value} is not a whole number from {low} to {high}")
        return int(value)

    return read


def _timeout(name: str, value: str) -> float:
    milliseconds = _whole(1, _LONG_MAX)(name, value)
    return milliseconds / 1000.0


def _frame_max(name: str, value: str) -> int:
    number = _whole(0, _LONG_MAX)(name, value)
    if 0 < number < FRAME_MIN_BYTES:
        # AMQP 0-9-1 4.2.3: no peer may require less than frame-min-size.
        raise URLError(f"{name}={value} is below the smallest frame, {FRAME_MIN_BYTES} bytes")
    return number


def _choice(*allowed: str) -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        for word in allowed:
            if value.lower() == word.lower():
                return word
        near = difflib.get_close_matches(value.lower(), [word.lower() for word in allowed], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise URLError(f"{name}={value} is unknown: use {' or '.join(allowed)}{hint}")

    return read


def _flag(name: str, value: str) -> bool:
    return _choice("true", "false")(name, value) == "true"


def _text(name: str, value: str) -> str:
    if not value:
        raise URLError(f"{name} is empty")
    return value


_PARAMETERS: dict[str, Callable[[str, str], Any]] = {
    "heartbeat": _whole(0, _SHORT_MAX),
    "connection_timeout": _timeout,
    "channel_max": _whole(0, _SHORT_MAX),
    "frame_max": _frame_max,
    "auth_mechanism": _choice(PLAIN, AMQPLAIN, EXTERNAL, ANONYMOUS),
    "name": _text,
}
_TLS_PARAMETERS: dict[str, Callable[[str, str], Any]] = {
    "cacertfile": _text,
    "certfile": _text,
    "keyfile": _text,
    "verify": _choice(VERIFY_PEER, VERIFY_NONE),
    "insecure": _flag,
    "server_name_indication": _text,
}


def _read_parameters(query: str, tls: bool, fields: dict[str, Any]) -> None:
    seen: set[str] = set()
    for pair in query.split("&"):
        if not pair:
            continue
        raw_name, equals, raw_value = pair.partition("=")
        name = _decode(raw_name, "parameter name")
        reader = _PARAMETERS.get(name) or _TLS_PARAMETERS.get(name)
        if reader is None:
            names = [*_PARAMETERS, *_TLS_PARAMETERS]
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
            raise URLError(f"unknown parameter {name!r}: {hint}")
        if not equals:
            raise URLError(f"parameter {name} has no value: write {name}=...")
        if name in seen:
            raise URLError(f"parameter {name} is given twice")
        if name in _TLS_PARAMETERS and not tls:
            raise URLError(f"parameter {name} belongs to TLS: the address must begin with amqps://")
        seen.add(name)
        fields[name] = reader(name, _decode(raw_value, name))
