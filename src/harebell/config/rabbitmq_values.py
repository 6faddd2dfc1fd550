"""Convert the values of `rabbitmq.conf` that RabbitMQ writes in another way than Harebell.

Every converter takes a line and raises ConfigError with the allowed values.
"""

from __future__ import annotations

import re

from harebell.config.errors import ConfigError
from harebell.config.rabbitmq_conf import Line
from harebell.config.values import PORT_MAX, machine_memory_bytes, rabbitmq_size, switch

ALL_ADDRESSES = "::"
"""Where RabbitMQ listens when a listener has a port alone."""
_MS = 1_000
_UNITS_MS = {"": 1, "ms": 1, "s": _MS, "m": 60 * _MS, "h": 3600 * _MS, "d": 86400 * _MS}
_UNITS_MS["w"] = 7 * _UNITS_MS["d"]
_FRAME_UNITS = {"": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
_LEVELS = {"notice": "warning", "critical": "none", "alert": "none", "emergency": "none"}
"""RabbitMQ's levels between and above those of Harebell: which one shows the same lines."""
_IMPORT_BACKENDS = {
    "local": "local_filesystem",
    "rabbit_definitions_import_local_filesystem": "local_filesystem",
    "rabbit_definitions_import_https": "https",
}
_VALIDATORS = {
    "rabbit_credential_validator_accept_everything": "accept_everything",
    "rabbit_credential_validator_min_password_length": "min_length",
    "rabbit_credential_validator_password_regexp": "regexp",
}


def wrong(line: Line, allowed: str) -> ConfigError:
    """Return the error of a value that is not allowed."""
    return ConfigError(f"{line.shown} must be {allowed}, not {line.value!r}")


def as_is(line: Line) -> str:
    """Return the value, which Harebell reads as it is."""
    return line.value


def words(line: Line) -> list[str]:
    """Convert words with commas between them."""
    return [word.strip() for word in line.value.split(",") if word.strip()]


def number(line: Line) -> int:
    """Convert a whole number."""
    if not re.fullmatch(r"\d{1,15}", line.value):
        raise wrong(line, "a whole number")
    return int(line.value)


def connections(line: Line) -> int | str:
    """Convert a number of connections; `infinity` is Harebell's 0, for no limit."""
    return 0 if line.value == "infinity" else line.value


def flag(line: Line) -> bool:
    """Convert true or false."""
    try:
        return switch(line.value)
    except ValueError:
        raise wrong(line, "true or false") from None


def byte_count(line: Line) -> int:
    """Convert a size to bytes."""
    size = rabbitmq_size(line.value)
    if size is None:
        raise wrong(line, "a size such as 2GB or 512MiB")
    return size


def frame_bytes(line: Line) -> int:
    """Convert a size of frames to bytes; in these keys RabbitMQ's KB is 1,024 bytes."""
    size = re.fullmatch(r"(\d{1,10})(kb|KB|mb|MB|gb|GB|)", line.value)
    if size is None:
        raise wrong(line, "a size such as 131072 or 128KB (of 1,024 bytes)")
    return int(size[1]) * _FRAME_UNITS[size[2].lower()]


def seconds(line: Line) -> float:
    """Convert a number of milliseconds to seconds."""
    return number(line) / _MS


def milliseconds(line: Line) -> int:
    """Convert a time with a unit to milliseconds."""
    time = re.fullmatch(r"(\d{1,12})(ms|s|m|h|d|w|)", line.value)
    if time is None:
        raise wrong(line, "a time such as 30s, 1h or a number of milliseconds")
    return int(time[1]) * _UNITS_MS[time[2]]


def memory_share(line: Line) -> float:
    """Convert a part of the machine's memory; 0 blocks publishers at once."""
    return _share(line, maximum=1.0, zero=True)


def disk_bytes(line: Line) -> int:
    """Convert `disk_free_limit.relative`, a multiple of the machine's memory, to bytes."""
    return int(_share(line, maximum=1000.0) * machine_memory_bytes())


def _share(line: Line, maximum: float, *, zero: bool = False) -> float:
    try:
        share = float(line.value)
    except ValueError:
        share = -1.0
    if not (0 < share <= maximum or (zero and share == 0)):
        above = "from 0" if zero else "above 0 and"
        raise wrong(line, f"a number {above} up to {maximum:g}")
    return share


def address(line: Line) -> tuple[str, int]:
    """Convert a port, with or without an address, to both."""
    parts = re.fullmatch(r"(?:(.*):)?(\d{1,5})", line.value)
    if parts is None or int(parts[2]) > PORT_MAX:
        raise wrong(line, "a port, or an address and a port such as 127.0.0.1:5672")
    host = (parts[1] or "").removeprefix("[").removesuffix("]")
    return host or ALL_ADDRESSES, int(parts[2])


def log_level(line: Line) -> str:
    """Convert a level of the log to the one of Harebell with the same lines."""
    return _LEVELS.get(line.value, line.value)


def log_file(line: Line) -> str:
    """Convert `log.file`, which may also say whether there is a log file."""
    return {"true": "harebell.log", "false": "none"}.get(line.value, line.value)


def import_backend(line: Line) -> str:
    """Convert the name of what definitions are imported with."""
    return _IMPORT_BACKENDS.get(line.value, line.value)


def password_validator(line: Line) -> str:
    """Convert the module that checks new passwords."""
    if line.value not in _VALIDATORS:
        raise wrong(line, "one of " + ", ".join(_VALIDATORS))
    return _VALIDATORS[line.value]
