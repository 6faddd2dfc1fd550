"""Where the log is written: the console, and files that are rotated."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harebell.config.errors import ConfigError

if TYPE_CHECKING:
    from harebell.config import Config

_DAY_SECONDS = 86_400
_DATE = re.compile(
    r"\$(?:D(?P<day>\d+)|W(?P<week>\d)(?:D(?P<w>\d+))?|M(?P<month>\d+)(?:D(?P<m>\d+))?)"
)
_FILE_MODE = 0o640
_DIRECTORY_MODE = 0o700


class Output(Protocol):
    """Takes formatted lines, in the thread of the log."""

    def write(self, lines: Sequence[str]) -> None:
        """Write lines, each without its line break.

        Raises:
            OSError: they were not written, or not all of them.
        """

    def reopen(self) -> None:
        """Open the file anew, where something else has moved it away."""

    def close(self) -> None:
        """Close the file."""


class Console:
    """Standard error or standard output.

    Args:
        stdio: "stderr" or "stdout".
    """

    def __init__(self, stdio: str) -> None:
        self._stream = sys.stdout if stdio == "stdout" else sys.stderr

    def write(self, lines: Sequence[str]) -> None:
        """Write lines; characters that the terminal cannot show are escaped."""
        stream = self._stream
        text = "".join(line + "\n" for line in lines)
        encoding = stream.encoding or "utf-8"
        try:
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()
        except ValueError:
            # The stream is closed: there is no console any more.
            return

    def reopen(self) -> None:
        """Do nothing: a console is not moved away."""

    def close(self) -> None:
        """Do nothing: the console is the process's."""


class RotatedFile:
    """A file that is renamed to FILE.0, FILE.0 to FILE.1 and so on, when it is large or old.

    Args:
        path: the file.
        size: bytes from which it is rotated; 0 for no limit.
        date: when it is rotated, in RabbitMQ's form, such as `$D0`; "" for never.
        count: how many rotated files are kept; with 0 the file is emptied instead.
        compress: whether rotated files are compressed.
        clock: returns the seconds since 1970.

    Raises:
        ConfigError: the file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        size: int = 0,
        date: str = "",
        count: int = 10,
        *,
        compress: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._size_max = size
        self._date = date
        self._count = count
        self._ending = ".gz" if compress else ""
        self._clock = clock
        self._handle = -1
        self._size = 0
        self._due: float | None = None
        try:
            for directory in reversed([each for each in path.parents if not each.exists()]):
                directory.mkdir(_DIRECTORY_MODE, exist_ok=True)
            self._open()
        except OSError as error:
            raise ConfigError(
                f"cannot write the log file {path}: {error.strerror or error}"
            ) from None

    def write(self, lines: Sequence[str]) -> None:
        """Append lines, and rotate the file before one that would make it too large."""
        if self._due is not None and self._clock() >= self._due:
            self._rotate()
        batch: list[bytes] = []
        size = self._size
        for line in lines:
            data = line.encode("utf-8", "backslashreplace") + b"\n"
            if self._size_max and size and size + len(data) > self._size_max:
                self._append(batch)
                self._rotate()
                batch, size = [], 0
            batch.append(data)
            size += len(data)
        self._append(batch)

    def reopen(self) -> None:
        """Close the file and open it by its name: logrotate has renamed it."""
        self.close()
        self._open()

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _append(self, batch: list[bytes]) -> None:
        data = b"".join(batch)
        if data and self._handle < 0:
            self._open()
        while data:
            written = os.write(self._handle, data)
            self._size += written
            data = data[written:]

    def _open(self) -> None:
        self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _FILE_MODE)
        self._size = os.fstat(self._handle).st_size
        self._due = next_rotation(self._date, self._clock())

    def _rotate(self) -> None:
        self.close()
        if self._count:
            for number in range(self._count - 1, 0, -1):
                with suppress(FileNotFoundError):
                    self._archive(number - 1).replace(self._archive(number))
            self._keep()
        else:
            os.truncate(self.path, 0)
        self._open()

    def _keep(self) -> None:
        """Move the file to FILE.0, or compress it to FILE.0.gz."""
        if not self._ending:
            self.path.replace(self._archive(0))
            return
        # Imported only if they are used.
        import gzip
        import shutil

        partial = self.path.with_name(self.path.name + ".compressing")
        self.path.replace(partial)
        with partial.open("rb") as plain, gzip.open(self._archive(0), "wb") as packed:
            shutil.copyfileobj(plain, packed)
        partial.unlink()

    def _archive(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}{self._ending}")


def next_rotation(date: str, now: float) -> float | None:
    """Return when a date such as `$D0`, `$W0D23` or `$M1D0` is next, in local time.

    Args:
        date: the date in RabbitMQ's form; "" for never.
        now: seconds since 1970.

    Returns:
        seconds since 1970, later than `now`; None for never.
    """
    match = _DATE.fullmatch(date)
    if match is None:
        return None
    hour = int(match["day"] or match["w"] or match["m"] or 0)
    day = time.localtime(now)
    for ahead in range(63):
        # mktime normalizes days beyond the end of the month.
        at = time.mktime((day.tm_year, day.tm_mon, day.tm_mday + ahead, hour, 0, 0, 0, 0, -1))
        there = time.localtime(at)
        # RabbitMQ's week begins with Sunday, Python's with Monday.
        if match["week"] is not None and (there.tm_wday + 1) % 7 != int(match["week"]):
            continue
        if match["month"] is not None and there.tm_mday != max(int(match["month"]), 1):
            continue
        if at > now:
            return at
    return None


class Opened(NamedTuple):
    """An output, and the lines that it gets.

    Args:
        name: "console", "file", "syslog" or "journald": whose level and format it has.
        output: what takes the lines.
        only: the one category that it has; "" for all but those of `without`.
        without: categories that have a file of their own.
    """

    name: str
    output: Output
    only: str = ""
    without: frozenset[str] = frozenset()


def log_path(config: Config) -> Path | None:
    """Return the path of the log file; None if there is none."""
    return None if config.log_file is None else _directory(config) / config.log_file


def log_paths(config: Config) -> list[Path]:
    """Return the paths of all log files, the one of `log_file` first."""
    path = log_path(config)
    paths = [] if path is None else [path]
    return list(dict.fromkeys([*paths, *category_paths(config).values()]))


def category_paths(config: Config) -> dict[str, Path]:
    """Return the paths of the files of single categories."""
    return {
        category: _directory(config) / row["file"]
        for category, row in config.log_files.items()
        if "file" in row
    }


def _directory(config: Config) -> Path:
    return config.log_dir or config.data_dir / "log"


def outputs_of(config: Config) -> list[Opened]:
    """Open the configured outputs; lines of a category with a file are in no other file.

    Raises:
        ConfigError: a log file cannot be written.
    """
    outputs: list[Opened] = []
    if config.log_console:
        outputs.append(Opened("console", Console(config.log_console_stdio)))
    paths = category_paths(config)
    path = log_path(config)
    if path is not None:
        outputs.append(Opened("file", _file(config, path, {}), without=frozenset(paths)))
    # Categories may share a file, which has to be open once to be rotated.
    files: dict[Path, Output] = {} if path is None else {path: outputs[-1].output}
    for category, own in paths.items():
        if own not in files:
            files[own] = _file(config, own, config.log_files[category])
        outputs.append(Opened("file", files[own], only=category))
    if config.log_syslog or config.log_journald:
        # Imported only if they are used.
        from harebell.server.logs.system import journald_of, syslog_of

        if config.log_syslog:
            outputs.append(Opened("syslog", syslog_of(config)))
        if config.log_journald:
            outputs.append(Opened("journald", journald_of(config)))
    return outputs


def _file(config: Config, path: Path, own: Mapping[str, Any]) -> RotatedFile:
    """Open a file, rotated as its category says or else as the log file."""
    return RotatedFile(
        path,
        own.get("rotation_size", config.log_file_rotation_size),
        own.get("rotation_date", config.log_file_rotation_date),
        own.get("rotation_count", config.log_file_rotation_count),
        compress=own.get("rotation_compress", config.log_file_rotation_compress),
    )
