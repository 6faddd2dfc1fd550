"""The audit trail: a line of JSON for each administrative act, in files of the data directory.

    audit/01881234567890123456.ndjson     named by the number of its first line
    audit/01881234599990123456.ndjson     the last one is written

A line is handed to the operating system before its act is answered, so that it survives a process
that is killed. A thread syncs the file within `AUDIT_SYNC_SECONDS`: a power cut may lose the lines
of that time. A line that such a cut has torn is passed over.

The number of a line is its time: milliseconds since 1970, times 1,024, plus the store. It grows
with each line of a store, and no two stores of a cluster have the same. Files are removed whole,
the oldest first, when all of them are too large, or when the newest line of one is too old.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from harebell.admin.audit import DONE, number_at, plain
from harebell.admin.rows.common import time_text
from harebell.config import Config
from harebell.model.events import TOOL_USER
from harebell.server.limits import (
    AUDIT_BLOCK_BYTES,
    AUDIT_FILE_SHARE,
    AUDIT_LINE_BYTES,
    AUDIT_SYNC_SECONDS,
    STORAGE_STORES,
)

DIRECTORY = "audit"
_ENDING = ".ndjson"
_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
_DAY_MS = 86_400_000

Row = dict[str, Any]


class AuditTrail:
    """The audit trail of a store.

    Args:
        config: returns the configuration: where the trail is, and how much of it is kept.
        store: the number of the store.
        clock: returns milliseconds since 1970.
        log: takes a level and a line.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        store: int,
        clock: Callable[[], int],
        log: Callable[[str, str], None],
    ) -> None:
        self.directory = config().data_dir / DIRECTORY
        self._config = config
        self._store = store % STORAGE_STORES
        self._clock = clock
        self._log = log
        self._handle = -1
        self._path = self.directory
        self._size = 0
        self._day = 0
        self._last = 0
        self._syncing: asyncio.TimerHandle | None = None
        self._failed = False

    # --- writing ----------------------------------------------------------------------------------

    def add(self, act: Mapping[str, Any]) -> int:
        """Write the line of an act; return its number, 0 if it could not be written."""
        if not self._config().audit_size:
            return 0
        try:
            if self._handle < 0:
                self._open()
            now = self._clock()
            self._last = max(number_at(now) + self._store, self._last + STORAGE_STORES)
            line = _encoded({"number": self._last, **act})
            if self._is_full(len(line), now // _DAY_MS):
                self._begin(now)
            self._write(line)
        except OSError as error:
            self._close()
            if not self._failed:
                self._failed = True
                self._log("error", f"the audit trail cannot be written: {error}")
            # The log is the other place that an operator looks at.
            self._log("warning", f"not in the audit trail: {_named(act)}")
            return 0
        self._failed = False
        self._sync_soon()
        return self._last

    def _open(self) -> None:
        """Open the last file, to go on with it, or begin one."""
        self.directory.mkdir(_DIRECTORY_MODE, exist_ok=True)
        own = [each for each in self._paths() if _store_of(each) == self._store]
        self.remove_old()
        for path in reversed(own):
            for line in _backwards(path):
                self._last = max(self._last, line["number"])
                break
            if self._last:
                break
        if not own or not own[-1].exists():
            self._begin(self._clock())
            return
        self._use(own[-1])
        if self._size and not _ends_whole(own[-1], self._size):
            self._write(b"\n")

    def _is_full(self, size: int, day: int) -> bool:
        share = max(self._config().audit_size // AUDIT_FILE_SHARE, AUDIT_LINE_BYTES)
        return bool(self._size) and (self._size + size > share or self._day != day)

    def _begin(self, now: int) -> None:
        """Begin a file, and remove those that are not kept."""
        self._close()
        first = max(self._last, number_at(now) + self._store)
        self._use(self.directory / f"{first:020}{_ENDING}")
        self.remove_old()

    def _use(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _FILE_MODE)
        self._path = path
        self._size = os.fstat(self._handle).st_size
        self._day = _number_of(path) // number_at(_DAY_MS)

    def _write(self, data: bytes) -> None:
        while data:
            written = os.write(self._handle, data)
            self._size += written
            data = data[written:]

    def _sync_soon(self) -> None:
        if self._syncing is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                # A command without a broker, which ends at once.
                _synced(self._path)
                return
            self._syncing = loop.call_later(AUDIT_SYNC_SECONDS, self._sync, loop)

    def _sync(self, loop: asyncio.AbstractEventLoop) -> None:
        self._syncing = None
        loop.run_in_executor(None, _synced, self._path)

    def _close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def close(self) -> None:
        """Sync and close the file."""
        if self._syncing is not None:
            self._syncing.cancel()
            self._syncing = None
            _synced(self._path)
        self._close()

    def remove_old(self) -> None:
        """Remove the files that are not kept: all together are too large, or one is too old."""
        config = self._config()
        oldest = self._clock() - config.audit_days * _DAY_MS
        kept = 0
        for path in reversed(self._paths()):
            if path == self._path and self._handle >= 0:
                kept += self._size
                continue
            with suppress(OSError):
                status = path.stat()
                kept += status.st_size
                if kept > config.audit_size or status.st_mtime_ns // 1_000_000 < oldest:
                    path.unlink()

    # --- reading ----------------------------------------------------------------------------------

    def newest_first(self, before: int, wanted: bytes = b"") -> Iterator[Row | None]:
        """Yield the lines before a number, the newest first, and None after each block of a file.

        Args:
            before: a number.
            wanted: octets that a line must have, in small letters.
        """
        self.remove_old()
        stores: dict[int, list[Path]] = {}
        for path in reversed(self._paths()):
            stores.setdefault(_store_of(path), []).append(path)
        # Files of stores that were joined have the times of this store's own.
        lines = [_of_store(paths, before, wanted) for paths in stores.values()]
        yield from _merged(lines)

    def _paths(self) -> list[Path]:
        """Return the files, the oldest first."""
        try:
            names = sorted(os.listdir(self.directory))
        except OSError:
            return []
        return [
            self.directory / name
            for name in names
            if name.endswith(_ENDING) and name[: -len(_ENDING)].isdigit()
        ]


def _encoded(line: Row) -> bytes:
    encoded = msgspec.json.encode(line) + b"\n"
    if len(encoded) > AUDIT_LINE_BYTES:
        left_out = {name: "…" for name in ("arguments", "before", "after") if line.get(name)}
        encoded = msgspec.json.encode({**line, **left_out}) + b"\n"
    return encoded


def _of_store(paths: list[Path], before: int, wanted: bytes) -> Iterator[Row | None]:
    for path in paths:
        if _number_of(path) < before:
            yield from _backwards(path, before, wanted)


def add_alone(data_dir: Path, act: str, named: str, arguments: dict[str, Any]) -> None:
    """Write a line for a command that ran without a broker.

    Args:
        data_dir: the data directory that it was about.
        act: such as "backups.restore".
        named: what it used.
        arguments: what was asked for.
    """
    # How much is kept is for the configuration of the broker to say.
    config = Config(data_dir=data_dir, audit_size=2**50, audit_days=36_500)
    now = time.time_ns() // 1_000_000
    trail = AuditTrail(lambda: config, 1, lambda: now, lambda _level, _text: None)
    line = {
        "time": time_text(now),
        "user": TOOL_USER,
        "peer": f"uid {os.getuid()}, pid {os.getpid()}",
        "door": "command",
        "act": act,
        "vhost": "",
        "object": named,
        "result": DONE,
        "arguments": arguments,
    }
    trail.add(plain(line))
    trail.close()


def _merged(sources: list[Iterator[Row | None]]) -> Iterator[Row | None]:
    heads: list[tuple[Row, Iterator[Row | None]]] = []
    for source in sources:
        line = yield from _next(source)
        if line is not None:
            heads.append((line, source))
    while heads:
        at = max(range(len(heads)), key=lambda each: heads[each][0]["number"])
        line, source = heads[at]
        yield line
        later = yield from _next(source)
        if later is None:
            del heads[at]
        else:
            heads[at] = later, source


def _next(source: Iterator[Row | None]) -> Generator[None, None, Row | None]:
    """Return the next line of a store; yields for each block that has none."""
    for line in source:
        if line is not None:
            return line
        yield None
    return None


def _backwards(path: Path, before: int = 2**63, wanted: bytes = b"") -> Iterator[Any]:
    """Yield the lines of a file from its end, and None after each block."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return  # it was removed meanwhile
    try:
        at = os.fstat(handle).st_size
        rest = b""
        while at > 0:
            start = max(0, at - AUDIT_BLOCK_BYTES)
            lines = (os.pread(handle, at - start, start) + rest).split(b"\n")
            at = start
            # The first one may begin in the block before.
            rest = lines.pop(0) if at else b""
            for line in reversed(lines):
                if wanted and wanted not in line.lower():
                    continue
                row = _decoded(line)
                if row is not None and row["number"] < before:
                    yield row
            yield None
    except OSError:
        return  # the disk gives no more of it
    finally:
        os.close(handle)


def _decoded(line: bytes) -> Row | None:
    """Return the line of an act; None for one that was torn."""
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return row if isinstance(row, dict) and isinstance(row.get("number"), int) else None


def _ends_whole(path: Path, size: int) -> bool:
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"


def _synced(path: Path) -> None:
    """Sync a file; called in a thread."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return  # it was removed meanwhile
    try:
        os.fsync(handle)
    except OSError:
        return  # the next line that is written has the error
    finally:
        os.close(handle)


def _number_of(path: Path) -> int:
    return int(path.stem)


def _store_of(path: Path) -> int:
    return _number_of(path) % STORAGE_STORES


def _named(act: Mapping[str, Any]) -> str:
    words = (f"{name} {act.get(name)!r}" for name in ("user", "peer", "act", "vhost", "object"))
    return ", ".join(words)
