"""Read and check the values of configuration keys.

Every reader raises ValueError with a text that follows the name of the key, such as "must be true
or false". `harebell.config.settings` declares the keys with their readers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from harebell.base import limits as base_limits
from harebell.config import limits

Reader = Callable[[Any], Any]

PORT_MAX = 65_535
SHORT_MAX = 65_535
COUNT_MAX = 2**31 - 1
TIMEOUT_MIN_SECONDS = 0.1
TIMEOUT_MAX_SECONDS = 3_600.0
LISTEN_SCHEMES = {"amqp": 5672, "amqps": 5671, "amqp-0-10t": 5673}
"""Schemes of the setting `listen`, and their default ports."""
_LISTEN = r"(?P<scheme>amqps?|amqp-0-10t)://(?P<host>\[[^\]]+\]|[^:/\[\]]+)(:(?P<port>\d{1,5}))?/?"
RABBITMQ_UNITS = {"": 1}
for _power, _letter in enumerate("kmgtp", start=1):
    RABBITMQ_UNITS |= dict.fromkeys((_letter, f"{_letter}i", f"{_letter}ib"), 1024**_power)
    RABBITMQ_UNITS[f"{_letter}b"] = 1000**_power
"""Units of sizes in RabbitMQ's configuration, in lower case."""
_UNITS = {**RABBITMQ_UNITS, "b": 1}
"""Units of sizes in all other places."""
_BACKUP_PLACE = r"/|$|[a-z][a-z0-9]*://[^@/][^@]*$"
_SIZE = r"(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)"


class ValueOrigin(NamedTuple):
    """Where the value of a setting was written.

    Args:
        shown: for messages: a file, a line and a key, an environment variable or a flag.
        file: the file; "" for other sources.
    """

    shown: str
    file: str = ""


def machine_memory_bytes(cgroup_limit: str = "/sys/fs/cgroup/memory.max") -> int:
    """Return the memory of the machine, or the limit of the cgroup if that is less, in bytes."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path(cgroup_limit).read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def rabbitmq_size(value: str) -> int | None:
    """Parse a size as RabbitMQ writes it, such as 512MiB or 2GB, in bytes; None if invalid."""
    match = re.fullmatch(r"(\d{1,18})\s*([A-Za-z]*)", value)
    if match is None or match[2].lower() not in RABBITMQ_UNITS:
        return None
    return int(match[1]) * RABBITMQ_UNITS[match[2].lower()]


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


def _byte_count(value: Any) -> int | None:
    """Parse a size in bytes; None if it is invalid."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    match = re.fullmatch(_SIZE, value.strip()) if isinstance(value, str) else None
    if match is None or match[2].lower() not in _UNITS:
        return None
    return int(float(match[1]) * _UNITS[match[2].lower()])


def size(low: int, high: int) -> Reader:
    """Return a reader of sizes in bytes, plain or with a unit."""
    allowed = f"must be a size from {low} to {high} bytes, such as 128KiB"

    def read(value: Any) -> int:
        byte_count = _byte_count(value)
        if byte_count is None or not low <= byte_count <= high:
            raise ValueError(allowed)
        return byte_count

    return read


def share_or_size(of: str, example: str) -> Reader:
    """Return a reader of a fraction (float, above 0 and up to 1) or a size in bytes (int)."""
    allowed = f"must be a share of {of}, or a size, such as {example}"

    def read(value: Any) -> float | int:
        share = _share_or_bytes(value)
        if share is None:
            raise ValueError(allowed)
        return share

    return read


def _share_or_bytes(value: Any) -> float | int | None:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and re.fullmatch(r"\d+(\.\d+)?%", text):
        text = float(text[:-1]) / 100
    elif isinstance(text, str) and re.fullmatch(r"\d*\.\d+(e-\d+)?|\d+e-\d+|1", text):
        text = float(text)
    if isinstance(text, float) and 0 < text <= 1:
        return text
    byte_count = None if isinstance(text, float) else _byte_count(text)
    if byte_count == 1:
        return 1.0
    return byte_count if byte_count is not None and byte_count > 1 else None


_memory = share_or_size("the machine's memory, such as 0.4 or 40%", "512MiB; 0 blocks at once")
_free = share_or_size("the disk, such as 0.05 or 5%", "1GiB; 0 for no limit")


def watermark(value: Any) -> float | int:
    """Parse `memory_high_watermark`: a fraction of the memory or a size; 0 blocks publishers."""
    return 0 if _is_zero(value) else _memory(value)


def free_space(value: Any) -> float | int:
    """Parse `disk_free_limit`: a fraction of the disk or a size; 0 for no limit."""
    return 0 if _is_zero(value) else _free(value)


def _is_zero(value: Any) -> bool:
    return value in (0, "0", "0.0", "0%") and not isinstance(value, bool)


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
        chosen = tuple(dict.fromkeys(word.strip().upper() for word in words))
        if set(chosen) <= set(NAMES):
            return chosen
    names = ", ".join(NAMES)
    raise ValueError(f"must be one or more of {names}, with commas between them")


def switch(value: Any) -> bool:
    """Parse true, false, on or off."""
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


def matching(form: str, allowed: str, *, stripped: bool = True) -> Callable[[Any], str]:
    """Return a reader of texts of a form.

    Args:
        form: a regular expression.
        allowed: follows the name of the key in errors.
        stripped: whether spaces around the text are removed.
    """

    def read(value: Any) -> str:
        text = value.strip() if stripped and isinstance(value, str) else value
        if not isinstance(text, str) or not re.fullmatch(form, text):
            raise ValueError(allowed)
        return text

    return read


version = matching(r"\d{1,9}(\.\d{1,9}){1,3}", "must be a version such as 3.13.7")
"""Checks a version number in the form that clients parse."""
schema = matching(
    r"[a-z_][a-z0-9_]{0,54}",
    "must be 1 to 55 lower-case letters, digits and _, not a digit first",
    stripped=False,
)
"""Checks a name of PostgreSQL that needs no quotes.

PostgreSQL cuts names after 63 bytes, and Harebell appends `_64` or `_cluster` to this name.
"""
header = matching(r"[ -~]*", "must be printable ASCII", stripped=False)
"""Checks the value of an HTTP header."""
_HOUR = r"(D([01]?\d|2[0-3]))"
rotation_date = matching(
    rf"(\$({_HOUR}|W[0-6]{_HOUR}?|M([12]?\d|3[01]){_HOUR}?))?",
    "must be a time such as $D0 (every midnight), $W0D23 or $M1D0",
)
"""Checks when a log file is rotated: `$D0` at midnight, `$W0D23`, `$M1D0`; "" for never."""


def text(value: Any) -> str:
    """Check a text that fits in a short string of AMQP."""
    if not isinstance(value, str) or not 0 < len(value.encode()) <= base_limits.NAME_BYTES:
        raise ValueError(f"must be text of 1 to {base_limits.NAME_BYTES} bytes")
    return value


def backup_place(value: Any) -> str:
    """Check the target of backups: empty, a directory, or an address in an object store."""
    if isinstance(value, str) and value.isprintable() and re.match(_BACKUP_PLACE, value):
        return value
    raise ValueError(
        "must be an absolute path, or an address such as s3://bucket/backups, without credentials"
    )


def storage_url(value: Any) -> str:
    """Check the address of the store: empty for the data directory, or a URL of PostgreSQL."""
    if value == "" or (
        isinstance(value, str)
        and re.match(r"postgres(ql)?://", value)
        and len(value) > len("postgres://")
    ):
        return str(value)
    raise ValueError("must be empty or a URL such as postgresql://user@host/database")


def host_and_port(value: Any) -> str:
    """Check a host and a port; empty for neither."""
    if value == "" or (
        isinstance(value, str)
        and re.fullmatch(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}", value)
        and 0 < int(value.rpartition(":")[2]) <= PORT_MAX
    ):
        return str(value)
    raise ValueError("must be a host and a port such as broker-1.example:5672")


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
        raise ValueError("must be a path that can be used (there is no such home)") from None


def _tested(question: Callable[[], bool]) -> bool:
    """Return the result of a file test.

    Raises:
        ValueError: the system refuses the test, for example because a name is too long.
    """
    try:
        return question()
    except OSError as error:
        raise ValueError(f"must be a path that can be used ({error.strerror})") from None


def directory(value: Any) -> Path:
    """Check the path of a directory; it may be missing, but it must not be a file."""
    if not isinstance(value, str | os.PathLike) or not str(value).strip():
        raise ValueError("must be the path of a directory")
    path = _path(value)
    if _tested(path.exists) and not _tested(path.is_dir):
        raise ValueError(f"must be a directory, and {path} is a file")
    return path


def file(what: str) -> Callable[[Any], Path]:
    """Return a reader of readable files; `what` names the file in errors."""

    def read(value: Any) -> Path:
        if not isinstance(value, str | os.PathLike) or not str(value).strip():
            raise ValueError(f"must be the path of {what}")
        path = _path(value)
        if not _tested(path.is_file):
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
    url = re.fullmatch(_LISTEN, value.strip())
    if url is None:
        return None
    scheme = url["scheme"]
    port = int(url["port"]) if url["port"] else LISTEN_SCHEMES[scheme]
    return (scheme, address(url["host"]), port) if port <= PORT_MAX else None


def listening(value: Any) -> tuple[tuple[str, str, int], ...]:
    """Parse the URLs of `listen` into scheme, host and port."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        words = [""]
    urls = [_listening(word) for word in words]
    if not urls or None in urls:
        raise ValueError(
            "must be one or more of amqp://host:port, amqps://host:port and "
            "amqp-0-10t://host:port, with commas between them"
        )
    return tuple(each for each in urls if each is not None)


def path_prefix(value: Any) -> str:
    """Check the start of paths, and remove a slash at its end."""
    allowed = "must be a path such as /rabbit, or empty"
    if not isinstance(value, str):
        raise ValueError(allowed)
    path = value.strip().rstrip("/")
    if path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path):
        raise ValueError(allowed)
    return path


def origins(value: Any) -> tuple[str, ...]:
    """Read origins of web pages: texts with commas, or a list."""
    allowed = "must be origins such as https://example.com, or *"
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not words:
        raise ValueError(allowed)
    if not all(isinstance(word, str) for word in words):
        raise ValueError(allowed)
    checked = tuple(word.strip().rstrip("/") for word in words if word.strip())
    if any(word != "*" and not re.fullmatch(r"https?://[^\s/,]+", word) for word in checked):
        raise ValueError(allowed)
    return checked


def optional(read: Reader) -> Reader:
    """Return a reader that also takes the word none, as None."""

    def read_optional(value: Any) -> Any:
        if isinstance(value, str) and value.strip().lower() == "none":
            return None
        return read(value)

    return read_optional


def names(value: Any) -> tuple[str, ...]:
    """Parse a list of names, or one text with commas between them; none is no name."""
    words = value.split(",") if isinstance(value, str) else value
    if isinstance(words, list | tuple) and all(isinstance(word, str) for word in words):
        checked = tuple(dict.fromkeys(word.strip() for word in words))
        if checked == ("none",) or not checked:
            return ()
        if all(0 < len(word.encode()) <= base_limits.NAME_BYTES for word in checked):
            return checked
    raise ValueError("must be names with commas between them, or none")


def pattern(value: Any) -> str:
    """Check a regular expression."""
    from harebell.base.patterns import PatternRefused, search_for  # here: few settings are one

    if not isinstance(value, str):
        raise ValueError("must be a regular expression such as .*")
    try:
        search_for(value)
    except PatternRefused as error:
        raise ValueError(f"must be a regular expression such as .*, but it {error}") from None
    return value


def _members(value: Any) -> Any:
    """Return a table from TOML, or from JSON in a text; None if it is neither."""
    if isinstance(value, str):
        import json  # here: only for values of the environment and of flags

        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def texts(value: Any) -> dict[str, str]:
    """Parse a table of texts."""
    table = _members(value)
    if table is None or not all(isinstance(each, str | int) for each in table.values()):
        raise ValueError('must be a table of texts such as { region = "eu" }')
    return {key: str(each) for key, each in table.items()}


def rows(**members: Reader) -> Reader:
    """Return a reader of a table of tables with these members; each may be missing."""
    allowed = "must be a table of tables with the members " + ", ".join(members)

    def read(value: Any) -> dict[str, dict[str, Any]]:
        table = _members(value)
        if table is None:
            raise ValueError(allowed)
        return {key: _row(key, row, members, allowed) for key, row in table.items()}

    return read


def _row(key: str, row: Any, members: dict[str, Reader], allowed: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ValueError(allowed)
    checked = {}
    for name, value in row.items():
        if name not in members:
            raise ValueError(f"{allowed}; {key} has {name}")
        try:
            checked[name] = members[name](value)
        except ValueError as error:
            raise ValueError(f"is wrong: {name} of {key} {error}") from None
    return checked


RETENTION_SECTIONS = ("global", "basic", "detailed")
RETENTION_AGES = {"minute": 60, "hour": 3_600, "day": 86_400}
"""Names of ages, in seconds; an age may also be a number of seconds."""


def retention_policies(value: Any) -> dict[str, dict[str, int]]:
    """Parse the table of sections, whose members are ages with the seconds between samples."""
    allowed = "must be a table such as { global = { minute = 5, hour = 60 } }; sections: "
    allowed += ", ".join(RETENTION_SECTIONS)
    table = _members(value)
    if table is None or not all(isinstance(each, dict) for each in table.values()):
        raise ValueError(allowed)
    checked: dict[str, dict[str, int]] = {}
    for section, ages in table.items():
        if section not in RETENTION_SECTIONS:
            raise ValueError(f"{allowed}; there is no {section}")
        checked[section] = {}
        for name, interval in ages.items():
            age = _age(section, name)
            try:
                read = whole(1, age)(interval)
            except ValueError as error:
                raise ValueError(f"is wrong: {section}.{name} {error}") from None
            if age // read > limits.STATISTICS_RING_SAMPLES:
                limit = limits.STATISTICS_RING_SAMPLES
                raise ValueError(f"is wrong: {section}.{name} would keep more than {limit} samples")
            checked[section][str(name)] = read
    return checked


def _age(section: str, name: Any) -> int:
    """Return the seconds of an age."""
    seconds = RETENTION_AGES.get(str(name))
    if seconds is not None:
        return seconds
    try:
        return int(whole(1, COUNT_MAX)(name))
    except ValueError:
        ages = ", ".join(RETENTION_AGES)
        raise ValueError(f"is wrong: {section}.{name} is none of {ages} and no number") from None


def levels(categories: tuple[str, ...], words: tuple[str, ...]) -> Reader:
    """Return a reader of a table from categories of the log to levels."""
    example = 'must be a table of levels such as { connection = "warning" }, of the categories '
    allowed = example + ", ".join(categories) + " and the levels " + ", ".join(words)

    def read(value: Any) -> dict[str, str]:
        table = _members(value)
        if table is None or not all(
            key in categories and level in words for key, level in table.items()
        ):
            raise ValueError(allowed)
        return dict(table)

    return read


def plaintext_format(value: Any) -> str:
    """Check the format of a log line: text with `$time`, `$level`, `$pid`, `$msg`, `$domain`."""
    if not isinstance(value, str) or "$msg" not in value or not value.isprintable():
        raise ValueError("must be a format such as $time [$level] $pid $msg")
    return value


def field_map(value: Any) -> str:
    """Check how fields of JSON lines are renamed: `time:ts level:severity *:-`."""
    if not isinstance(value, str) or not re.fullmatch(
        r"\s*([\w*]+:[\w.@-]+)?(\s+[\w*]+:[\w.@-]+)*\s*", value
    ):
        raise ValueError("must be pairs such as time:ts level:severity pid:-")
    return " ".join(value.split())


def definitions(value: Any) -> Path:
    """Check the path of a definitions file, or of a directory with such files."""
    path = _path(value) if isinstance(value, str | os.PathLike) and str(value).strip() else None
    if path is not None and _tested(path.is_dir):
        return path
    return file("a file of definitions")(value)


def https_url(value: Any) -> str:
    """Check a URL with https."""
    # Imported only if it is used: every verb that connects to a broker imports this module.
    from urllib.parse import urlsplit

    shown = text(value)
    parts = urlsplit(shown)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError("must be a URL such as https://host/definitions.json")
    return shown
