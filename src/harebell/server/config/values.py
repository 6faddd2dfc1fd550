"""Read and check the values of configuration keys.

Every reader raises ValueError with a text that is written behind the name of the key, such as "must
be true or false". The table of keys is in `harebell.server.config.settings`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harebell.base import limits

Reader = Callable[[Any], Any]

PORT_MAX = 65_535
SHORT_MAX = 65_535
COUNT_MAX = 2**31 - 1
TIMEOUT_MIN_SECONDS = 0.1
TIMEOUT_MAX_SECONDS = 3_600.0
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
"""Schemes of the setting `listen`, and their default ports."""
_LISTEN = re.compile(
    r"(?P<scheme>amqp|amqp-0-10t)://(?P<host>\[[^\]]+\]|[^:/\[\]]+)(:(?P<port>\d{1,5}))?/?"
)
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)")


def whole(low: int, high: int) -> Reader:
    """Return a reader of integers from `low` to `high`."""
    allowed = f"must be a whole number from {low} to {high}"

    def read(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,12}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(allowed)
        return value

    return read


def seconds(low: float, high: float) -> Reader:
    """Return a reader of seconds from `low` to `high`."""
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
    """Parse a size in bytes; None if it is invalid."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[2].upper() not in _UNITS:
        return None
    return int(float(found[1]) * _UNITS[found[2].upper()])


def size(low: int, high: int) -> Reader:
    """Return a reader of sizes in bytes, plain or with a unit."""
    allowed = f"must be a size from {low} to {high} octets, such as {high} or 128KiB"

    def read(value: Any) -> int:
        octets = _octets(value)
        if octets is None or not low <= octets <= high:
            raise ValueError(allowed)
        return octets

    return read


def share_or_size(of: str, example: str) -> Reader:
    """Return a reader of a fraction (float, above 0 and up to 1) or a size in bytes (int)."""
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
    """Parse `disk_free_limit`: a fraction of the disk or a size; 0 for no limit."""
    return 0 if value in (0, "0") and not isinstance(value, bool) else _free(value)


def choice(*words: str) -> Reader:
    """Return a reader of one of the given words."""
    allowed = "must be one of " + ", ".join(words)

    def read(value: Any) -> str:
        if isinstance(value, str) and value.strip().lower() in words:
            return value.strip().lower()
        raise ValueError(allowed)

    return read


def mechanisms(value: Any) -> tuple[str, ...]:
    """Parse names of SASL mechanisms."""
    # Imported only if it is used: every verb that connects to a broker imports this module.
    from harebell.auth.sasl.exchanges import NAMES

    words = value.split(",") if isinstance(value, str) else value
    if isinstance(words, list | tuple) and words and all(isinstance(word, str) for word in words):
        found = tuple(dict.fromkeys(word.strip().upper() for word in words))
        if set(found) <= set(NAMES):
            return found
    names = ", ".join(NAMES)
    raise ValueError(f"must be one or more of {names}, with commas between them")


def switch(value: Any) -> bool:
    """Parse a boolean."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("true", "false", "on", "off"):
        raise ValueError("must be true or false")
    return word in ("true", "on")


def port_or_none(value: Any) -> int | None:
    """Parse a port number; None for the word none."""
    if isinstance(value, str) and value.strip().lower() in ("none", "off"):
        return None
    try:
        number: int = whole(0, PORT_MAX)(value)
    except ValueError as error:
        raise ValueError(f"{error}, or none") from None
    return number


def ciphers(value: Any) -> str:
    """Check a cipher list with OpenSSL."""
    # Imported only if it is used: every verb that connects to a broker imports this module.
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(value)
    except (TypeError, ValueError, ssl.SSLError):
        raise ValueError(
            "must be a list of ciphers as OpenSSL writes it, such as ECDHE+AESGCM:ECDHE+CHACHA20"
        ) from None
    return str(value)


def version(value: Any) -> str:
    """Check a version number in the form that clients parse."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,9}(\.\d{1,9}){1,3}", value.strip()):
        raise ValueError("must be a version such as 3.13.7")
    return value.strip()


def text(value: Any) -> str:
    """Check a text that fits in a short string of AMQP."""
    if not isinstance(value, str) or not 0 < len(value.encode()) <= limits.NAME_BYTES:
        raise ValueError(f"must be text of 1 to {limits.NAME_BYTES} octets")
    return value


def address(value: Any) -> str:
    """Check a host name or an IP address, without a port."""
    name = value.strip().removeprefix("[").removesuffix("]") if isinstance(value, str) else ""
    if not re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+(%\w+)?", name):
        raise ValueError("must be a host name or an IP address, such as 127.0.0.1 or ::1")
    return name


def _path(value: str | os.PathLike[str]) -> Path:
    """Return the absolute path, with `~` expanded."""
    try:
        return Path(value).expanduser().absolute()
    except RuntimeError:
        raise ValueError("must be a path that can be used (nobody knows that home)") from None


def _asked(question: Callable[[], bool]) -> bool:
    """Return the result of a file test; ValueError if the system refuses the test."""
    try:
        return question()
    except OSError as error:
        raise ValueError(f"must be a path that can be used ({error.strerror})") from None


def folder(value: Any) -> Path:
    """Check the path of a directory; it may be missing, but it must not be a file."""
    if not isinstance(value, str | os.PathLike) or not str(value).strip():
        raise ValueError("must be the path of a directory")
    path = _path(value)
    if _asked(path.exists) and not _asked(path.is_dir):
        raise ValueError(f"must be a directory, and {path} is a file")
    return path


def file(what: str) -> Callable[[Any], Path]:
    """Return a reader of readable files; `what` names the file in errors."""

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
    """Check a readable PEM file."""
    return str(file("a PEM file")(value))


def password_file(value: Any) -> str:
    """Check a readable file with a passphrase."""
    return str(file("a file with a passphrase")(value))


def _listening(value: str) -> tuple[str, str, int] | None:
    """Parse one URL of `listen`; None if it is invalid."""
    found = _LISTEN.fullmatch(value.strip())
    if found is None:
        return None
    scheme = found["scheme"]
    port = int(found["port"]) if found["port"] else LISTEN_SCHEMES[scheme]
    return (scheme, address(found["host"]), port) if port <= PORT_MAX else None


def listening(value: Any) -> tuple[tuple[str, str, int], ...]:
    """Parse the URLs of `listen` into scheme, host and port."""
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


def path_prefix(value: Any) -> str:
    """Read the start of paths; a slash at its end is left out."""
    allowed = "must be a path such as /rabbit, or empty"
    if not isinstance(value, str):
        raise ValueError(allowed)
    path = value.strip().rstrip("/")
    if path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path):
        raise ValueError(allowed)
    return path


def header(value: Any) -> str:
    """Read the value of an HTTP header: printable ASCII."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise ValueError("must be printable ASCII")
    return value


def origins(value: Any) -> tuple[str, ...]:
    """Read origins of web pages: texts with commas, or a list."""
    allowed = "must be origins such as https://example.com, or *"
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not words:
        raise ValueError(allowed)
    if not all(isinstance(word, str) for word in words):
        raise ValueError(allowed)
    found = tuple(word.strip().rstrip("/") for word in words if word.strip())
    if any(word != "*" and not re.fullmatch(r"https?://[^\s/,]+", word) for word in found):
        raise ValueError(allowed)
    return found
