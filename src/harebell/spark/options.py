"""The options of the format `harebell`: their names, their defaults, and what is wrong with them.

Names are Spark's, so their case does not matter. Whatever cannot be used is named together with
what could be, before anything is connected to. Passwords stand in `url` only, which Spark redacts
in plans, and are never printed.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harebell.base import limits
from harebell.base.errors import HarebellError
from harebell.base.limits import NAME_BYTES
from harebell.client.url import URL, URLError

URL_VARIABLE = "HAREBELL_URL"
DEFAULT_URL = "amqp://guest:guest@127.0.0.1:5672/%2F"


class OptionError(HarebellError, ValueError):
    """An option that cannot be used; the text names it."""


@dataclass(frozen=True)
class Options:
    """What the user of the format asked for.

    Args:
        queue: the queue to read.
        url: where the broker is, and as whom.
        max_offsets_per_trigger: most messages in one micro-batch.
        prefetch: most unacknowledged messages; None is as many as in a micro-batch.
        fetch_timeout: seconds without an answer after which the query fails.
        long_poll_ms: milliseconds that an idle query waits for a message.
        rows_per_batch: rows of an Arrow record batch.
        min_partitions: partitions of a large micro-batch; None is one per core.
        spool_dir: where messages lie between the queue and Spark; None is the system's.
        include_headers: whether there is a column `headers`.
        include_properties: whether there is a column `properties`.
    """

    queue: str
    url: URL = field(repr=False)
    max_offsets_per_trigger: int = limits.SPARK_ROWS_PER_TRIGGER
    prefetch: int | None = None
    fetch_timeout: float = limits.SPARK_FETCH_TIMEOUT_SECONDS
    long_poll_ms: int = int(limits.SPARK_LONG_POLL_SECONDS * 1000)
    rows_per_batch: int = limits.SPARK_ROWS_PER_BATCH
    min_partitions: int | None = None
    spool_dir: Path | None = None
    include_headers: bool = True
    include_properties: bool = True

    @property
    def window(self) -> int:
        """Most messages that are unacknowledged at a time."""
        return self.prefetch or self.max_offsets_per_trigger

    @property
    def partitions(self) -> int:
        """Partitions of a large micro-batch."""
        return self.min_partitions or os.cpu_count() or 1


def parse(given: Mapping[str, str], environment: Mapping[str, str] | None = None) -> Options:
    """Read the options.

    Args:
        given: the options as Spark hands them over.
        environment: used where the option `url` is not given.

    Raises:
        OptionError: which one is wrong and how to mend it.
    """
    values = {name.lower(): value for name, value in given.items()}
    for name in given:
        if name.lower() not in _READERS:
            raise OptionError(_unknown(name))
    environment = os.environ if environment is None else environment
    values.setdefault("url", environment.get(URL_VARIABLE) or DEFAULT_URL)
    if "queue" not in values:
        raise OptionError(
            'the option queue is missing: say which queue to read, .option("queue", "orders")'
        )
    read = {
        _READERS[name][0]: _READERS[name][1](_NAMES[name], value) for name, value in values.items()
    }
    return Options(**read)  # type: ignore[arg-type]


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), list(_READERS), n=1)
    if near:
        return f"unknown option {name!r}: did you mean {_NAMES[near[0]]}?"
    return f"unknown option {name!r}: the options are {', '.join(sorted(_NAMES.values()))}"


def _read_url(name: str, value: str) -> URL:
    try:
        return URL.parse(value)
    except URLError as error:
        # Without the value: it may hold a password.
        raise OptionError(f"the option {name} is wrong: {error}") from None


def _read_queue(name: str, value: str) -> str:
    if not value or len(value.encode()) > NAME_BYTES:
        raise OptionError(f"the option {name} must be a queue's name of 1 to {NAME_BYTES} octets")
    return value


def _whole(least: int, most: int | None = None) -> Callable[[str, str], int]:
    allowed = f"at least {least}" if most is None else f"from {least} to {most}"

    def read(name: str, value: str) -> int:
        try:
            number = int(value.replace("_", ""))
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise OptionError(f"the option {name} must be a whole number {allowed}, not {value!r}")
        return number

    return read


_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def _read_seconds(name: str, value: str) -> float:
    text = value.strip().lower()
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(digits) :].strip()
    try:
        seconds = float(digits) * _SECONDS[unit]
    except (KeyError, ValueError):
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise OptionError(
            f"the option {name} must be a time above 0 such as 30s, 500ms or 2m, not {value!r}"
        )
    return seconds


def _read_flag(name: str, value: str) -> bool:
    flag = {"true": True, "false": False}.get(value.strip().lower())
    if flag is None:
        raise OptionError(f"the option {name} must be true or false, not {value!r}")
    return flag


def _read_folder(name: str, value: str) -> Path:
    path = Path(value)
    if not path.is_absolute():
        raise OptionError(
            f"the option {name} must be an absolute path that every executor sees, not {value!r}"
        )
    return path


_TABLE: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "queue": ("queue", _read_queue),
    "url": ("url", _read_url),
    "maxOffsetsPerTrigger": ("max_offsets_per_trigger", _whole(1)),
    "prefetch": ("prefetch", _whole(1)),
    "fetchTimeout": ("fetch_timeout", _read_seconds),
    "longPollMs": ("long_poll_ms", _whole(0, 60_000)),
    "rowsPerBatch": ("rows_per_batch", _whole(1, limits.SPARK_ROWS_PER_BATCH_MOST)),
    "minPartitions": ("min_partitions", _whole(1, 10_000)),
    "spoolDir": ("spool_dir", _read_folder),
    "includeHeaders": ("include_headers", _read_flag),
    "includeProperties": ("include_properties", _read_flag),
}
_READERS = {name.lower(): reader for name, reader in _TABLE.items()}
_NAMES = {name.lower(): name for name in _TABLE}
SOURCE_NAMES = _NAMES
"""Every option, by its name in small letters."""
