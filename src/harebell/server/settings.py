"""What can be configured: one row for every key, with its reader and its one-line description.

A key has one name everywhere: `tls_port` in the TOML file, `HAREBELL_TLS_PORT` in the environment
and `--tls-port` on the command line. The readers below turn what stands there (TOML values are
typed, the others are text) into the value that `harebell.server.config.Config` holds, and raise
ValueError with what is allowed, which the caller completes with the source and the key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harebell.base import limits
from harebell.server.certificate import LOGIN_NAMES

PREFIX = "HAREBELL_"

Reader = Callable[[Any], Any]

_PORT_MAX = 65_535
_SHORT_MAX = 65_535
_COUNT_MAX = 2**31 - 1
_TIMEOUT_MIN_SECONDS = 0.1
_TIMEOUT_MAX_SECONDS = 3_600.0
_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
LISTEN_SCHEMES = {"amqp": 5672, "amqp-0-10t": 5673}
"""Schemes of the setting `listen`, and their usual ports."""
_LISTEN = re.compile(
    r"(?P<scheme>amqp|amqp-0-10t)://(?P<host>\[[^\]]+\]|[^:/\[\]]+)(:(?P<port>\d{1,5}))?/?"
)
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class Setting:
    """One key.

    Args:
        name: the key in the TOML file; the other spellings follow from it.
        read: turns what was written into the value, or raises ValueError saying what is allowed.
        help: what it decides, in one line, for `--help` and the documentation.
        secret: true for a value that must not stand on a command line, where others can read it.
    """

    name: str
    read: Reader
    help: str
    secret: bool = False

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str | None:
        """Its name on the command line; None when it may not be given there."""
        return None if self.secret else "--" + self.name.replace("_", "-")


def whole(low: int, high: int) -> Reader:
    """A whole number from `low` to `high`."""
    allowed = f"must be a whole number from {low} to {high}"

    def read(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,12}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(allowed)
        return value

    return read


def seconds(low: float, high: float) -> Reader:
    """A number of seconds from `low` to `high`."""
    allowed = f"must be a number of seconds from {low:g} to {high:g}"

    def read(value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(allowed) from None
        if isinstance(value, bool) or not low <= number <= high:
            raise ValueError(allowed)
        return number

    return read


def _octets(value: Any) -> int | None:
    """The size somebody wrote, in octets; None when it is no size."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[2].upper() not in _UNITS:
        return None
    return int(float(found[1]) * _UNITS[found[2].upper()])


def size(low: int, high: int) -> Reader:
    """A number of octets, plain or with a unit."""
    allowed = f"must be a size from {low} to {high} octets, such as {high} or 128KiB"

    def read(value: Any) -> int:
        octets = _octets(value)
        if octets is None or not low <= octets <= high:
            raise ValueError(allowed)
        return octets

    return read


def share_or_size(of: str, example: str) -> Reader:
    """A share of something (float, above 0 and up to 1) or a size in octets (int)."""
    allowed = f"must be a share of {of}, or a size, such as {example}"

    def read(value: Any) -> float | int:
        found = _share_or_octets(value)
        if found is None:
            raise ValueError(allowed)
        return found

    return read


def _share_or_octets(value: Any) -> float | int | None:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and re.fullmatch(r"\d+(\.\d+)?%", text):
        text = float(text[:-1]) / 100
    elif isinstance(text, str) and re.fullmatch(r"\d*\.\d+|1", text):
        text = float(text)
    if isinstance(text, float) and 0 < text <= 1:
        return text
    octets = None if isinstance(text, float) else _octets(text)
    if octets == 1:
        return 1.0
    return octets if octets is not None and octets > 1 else None


watermark = share_or_size("the machine's memory, such as 0.4 or 40%", "512MiB")
_free = share_or_size("the disk, such as 0.05 or 5%", "1GiB; 0 for no limit")


def free_space(value: Any) -> float | int:
    """What shall stay free: as `watermark`, of the disk; 0 for no limit."""
    return 0 if value in (0, "0") and not isinstance(value, bool) else _free(value)


def choice(*words: str) -> Reader:
    """One of a few words."""
    allowed = "must be one of " + ", ".join(words)

    def read(value: Any) -> str:
        if isinstance(value, str) and value.strip().lower() in words:
            return value.strip().lower()
        raise ValueError(allowed)

    return read


def mechanisms(value: Any) -> tuple[str, ...]:
    """Names of SASL mechanisms."""
    # Imported for who sets them: this table is read by every verb that asks a broker.
    from harebell.auth.sasl.exchanges import NAMES

    words = value.split(",") if isinstance(value, str) else value
    if isinstance(words, list | tuple) and words and all(isinstance(word, str) for word in words):
        found = tuple(dict.fromkeys(word.strip().upper() for word in words))
        if set(found) <= set(NAMES):
            return found
    names = ", ".join(NAMES)
    raise ValueError(f"must be one or more of {names}, with commas between them")


def switch(value: Any) -> bool:
    """On or off."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("true", "false", "on", "off"):
        raise ValueError("must be true or false")
    return word in ("true", "on")


def port_or_none(value: Any) -> int | None:
    """A port, or a word for none."""
    if isinstance(value, str) and value.strip().lower() in ("none", "off"):
        return None
    try:
        number: int = whole(0, _PORT_MAX)(value)
    except ValueError as error:
        raise ValueError(f"{error}, or none") from None
    return number


def ciphers(value: Any) -> str:
    """A list of ciphers that OpenSSL knows."""
    # Imported for who sets them: this table is read by every verb that asks a broker.
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(value)
    except (TypeError, ValueError, ssl.SSLError):
        raise ValueError(
            "must be a list of ciphers as OpenSSL writes it, such as ECDHE+AESGCM:ECDHE+CHACHA20"
        ) from None
    return str(value)


def version(value: Any) -> str:
    """A version, as clients take it apart."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,9}(\.\d{1,9}){1,3}", value.strip()):
        raise ValueError("must be a version such as 3.13.7")
    return value.strip()


def text(value: Any) -> str:
    """Some text that fits a short string of AMQP."""
    if not isinstance(value, str) or not 0 < len(value.encode()) <= limits.NAME_BYTES:
        raise ValueError(f"must be text of 1 to {limits.NAME_BYTES} octets")
    return value


def address(value: Any) -> str:
    """A host name or an IP address, without a port."""
    name = value.strip().removeprefix("[").removesuffix("]") if isinstance(value, str) else ""
    if not re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+(%\w+)?", name):
        raise ValueError("must be a host name or an IP address, such as 127.0.0.1 or ::1")
    return name


def _path(value: str | os.PathLike[str]) -> Path:
    """A whole path; `~` is a home."""
    try:
        return Path(value).expanduser().absolute()
    except RuntimeError:
        raise ValueError("must be a path that can be used (nobody knows that home)") from None


def _asked(question: Callable[[], bool]) -> bool:
    """What the system says of a path, or its reason not to."""
    try:
        return question()
    except OSError as error:
        raise ValueError(f"must be a path that can be used ({error.strerror})") from None


def folder(value: Any) -> Path:
    """A directory that exists or can be made."""
    if not isinstance(value, str | os.PathLike) or not str(value).strip():
        raise ValueError("must be the path of a directory")
    path = _path(value)
    if _asked(path.exists) and not _asked(path.is_dir):
        raise ValueError(f"must be a directory, and {path} is a file")
    return path


def file(what: str) -> Callable[[Any], Path]:
    """A file that can be read now; `what` it is, for errors."""

    def read(value: Any) -> Path:
        if not isinstance(value, str | os.PathLike) or not str(value).strip():
            raise ValueError(f"must be the path of {what}")
        path = _path(value)
        if not _asked(path.is_file):
            raise ValueError(f"must be {what}, and there is no file {path}")
        if not os.access(path, os.R_OK):
            raise ValueError(f"must be a file that this user may read, and {path} is not")
        return path

    return read


def pem_file(value: Any) -> str:
    """A PEM file that can be read now."""
    return str(file("a PEM file")(value))


def password_file(value: Any) -> str:
    """A file with a passphrase that can be read now."""
    return str(file("a file with a passphrase")(value))


def _listening(value: str) -> tuple[str, str, int] | None:
    """One URL of `listen`, taken apart; None when it is none."""
    found = _LISTEN.fullmatch(value.strip())
    if found is None:
        return None
    scheme = found["scheme"]
    port = int(found["port"]) if found["port"] else LISTEN_SCHEMES[scheme]
    return (scheme, address(found["host"]), port) if port <= _PORT_MAX else None


def listening(value: Any) -> tuple[tuple[str, str, int], ...]:
    """URLs to listen on: scheme, host and port of each."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        words = [""]
    found = [_listening(word) for word in words]
    if not found or None in found:
        raise ValueError(
            "must be one or more of amqp://host:port and amqp-0-10t://host:port, with commas "
            "between them"
        )
    return tuple(each for each in found if each is not None)


SETTINGS: tuple[Setting, ...] = (
    Setting("host", address, "Address to listen on."),
    Setting(
        "port",
        port_or_none,
        "Port for AMQP; 0 takes a free one and prints it, none serves no plain AMQP.",
    ),
    Setting("listen", listening, "More addresses: amqp://host:port, amqp-0-10t://host:port."),
    Setting("data_dir", folder, "Directory for everything the broker keeps."),
    Setting("tls_port", whole(0, _PORT_MAX), "Port for AMQP over TLS; without it there is no TLS."),
    Setting("tls_cert", pem_file, "Certificate chain of the broker (PEM)."),
    Setting("tls_key", pem_file, "Private key of the certificate (PEM)."),
    Setting("tls_ca", pem_file, "Authorities that client certificates are checked against (PEM)."),
    Setting("tls_key_password", text, "Passphrase of that key.", secret=True),
    Setting("tls_key_password_file", password_file, "File with the passphrase of that key."),
    Setting(
        "tls_verify",
        choice("verify_peer", "verify_none"),
        "Whether certificates that clients show are checked against tls_ca.",
    ),
    Setting(
        "tls_fail_if_no_peer_cert",
        switch,
        "Turn clients away that show no certificate.",
    ),
    Setting("tls_min_version", choice("tlsv1.2", "tlsv1.3"), "Oldest version of TLS."),
    Setting("tls_ciphers", ciphers, "Ciphers of TLS 1.2, as OpenSSL writes them."),
    Setting(
        "tls_login_from",
        choice(*LOGIN_NAMES),
        "What of a client's certificate is its user's name, for SASL EXTERNAL.",
    ),
    Setting(
        "auth_mechanisms",
        mechanisms,
        "SASL mechanisms that clients may log in with, where they can succeed.",
    ),
    Setting(
        "anonymous_login_user",
        text,
        "User that everybody is who logs in with SASL ANONYMOUS; without it nobody can.",
    ),
    Setting("channel_max", whole(1, _SHORT_MAX), "Most channels per connection."),
    Setting(
        "channel_max_per_node",
        whole(0, _COUNT_MAX),
        "Most channels of all connections together; 0 for no limit.",
    ),
    Setting("connection_max", whole(0, _COUNT_MAX), "Most connections; 0 for no limit."),
    Setting(
        "unauthenticated_connection_max",
        whole(0, _COUNT_MAX),
        "Most connections that have not logged in yet; 0 for no limit.",
    ),
    Setting(
        "unauthenticated_connection_max_per_address",
        whole(0, _COUNT_MAX),
        "Most of them from one address; 0 for no limit.",
    ),
    Setting(
        "consumer_max_per_channel",
        whole(0, _COUNT_MAX),
        "Most consumers per channel; 0 for no limit.",
    ),
    Setting("vhost_max", whole(0, _COUNT_MAX), "Most virtual hosts; 0 for no limit."),
    Setting(
        "cluster_queue_limit",
        whole(0, _COUNT_MAX),
        "Most queues of all virtual hosts together; 0 for no limit.",
    ),
    Setting(
        "cluster_exchange_limit",
        whole(0, _COUNT_MAX),
        "Most exchanges of all virtual hosts together; 0 for no limit.",
    ),
    Setting(
        "frame_max",
        size(limits.FRAME_MIN_BYTES, limits.MESSAGE_MAX_BYTES),
        "Largest frame, in octets.",
    ),
    Setting("heartbeat", whole(0, _SHORT_MAX), "Seconds between heartbeats; 0 turns them off."),
    Setting(
        "handshake_timeout_seconds",
        seconds(_TIMEOUT_MIN_SECONDS, _TIMEOUT_MAX_SECONDS),
        "Seconds that a client has to log in.",
    ),
    Setting(
        "consumer_timeout",
        whole(0, limits.CONSUMER_TIMEOUT_MAX_MS),
        "Milliseconds that a delivery may go without acknowledgement; 0 for no limit.",
    ),
    Setting(
        "default_queue_type",
        choice("classic", "quorum", "stream"),
        "Type of queues whose declaration and vhost name none.",
    ),
    Setting(
        "memory_high_watermark",
        watermark,
        "Memory for queued messages above which publishers wait.",
    ),
    Setting(
        "disk_free_limit",
        free_space,
        "Free disk space below which publishers wait; 0 for no limit.",
    ),
    Setting(
        "durability",
        choice("fsync", "interval", "os"),
        "What a confirm waits for: the disk, or less.",
    ),
    Setting(
        "durability_interval_ms",
        whole(1, limits.DURABILITY_INTERVAL_MAX_MS),
        'Milliseconds between syncs with durability "interval".',
    ),
    Setting(
        "segment_bytes",
        size(limits.SEGMENT_MIN_BYTES, limits.SEGMENT_MAX_BYTES),
        "Size of the files that a queue's messages are kept in.",
    ),
    Setting(
        "stream_segment_bytes",
        size(limits.SEGMENT_MIN_BYTES, limits.SEGMENT_MAX_BYTES),
        "The same for streams.",
    ),
    Setting(
        "message_max_bytes",
        size(1, limits.BODY_HARD_MAX_BYTES),
        "Largest message body, in octets.",
    ),
    Setting(
        "load_definitions",
        file("a file of definitions"),
        "Definitions (JSON) that are taken in at every start, before anybody connects.",
    ),
    Setting("compat_product", text, "Product that clients are told they are connected to."),
    Setting("compat_version", version, "Version of that product."),
    Setting(
        "message_interceptors_incoming_set_header_timestamp_overwrite",
        switch,
        "Stamp every message that comes in with the time; true replaces another.",
    ),
    Setting(
        "message_interceptors_incoming_set_header_routing_node_overwrite",
        switch,
        "Stamp every message that comes in with the broker; true replaces another.",
    ),
    Setting(
        "message_interceptors_outgoing_timestamp_enabled",
        switch,
        "Stamp every message that goes out with the time.",
    ),
    Setting("log_exchange", switch, "Publish the log on the exchange amq.rabbitmq.log."),
    Setting(
        "log_exchange_level",
        choice("debug", "info", "warning", "error"),
        "Least important line that is published there.",
    ),
    Setting("log_level", choice("debug", "info", "warning", "error"), "Least important log line."),
    Setting("loop", choice("auto", "uvloop", "asyncio"), "Event loop; auto prefers uvloop."),
    Setting("default_user", text, "User that exists from the start."),
    Setting("default_pass", text, "Password of that user.", secret=True),
)

ALIASES = {"max_message_size": "message_max_bytes"}
"""Other names that RabbitMQ's users know; they stand in the file and in the environment."""

BY_NAME = {setting.name: setting for setting in SETTINGS}
