"""The store on disk: opens logs, and has the parts that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from harebell.base.clock import Clock
from harebell.base.durability import Durability
from harebell.base.gauge import Gauge
from harebell.base.lags import lag_of
from harebell.base.ports import (
    BRANCH_LOG,
    JOB_LOG,
    PUBLISHER_LOG,
    Definitions,
    File,
    Files,
    Log,
    Store,
    write_all,
)
from harebell.base.work import Step, Work
from harebell.store import inventory
from harebell.store.commit import GroupCommit
from harebell.store.limits import (
    AHEAD_FROM_BYTES,
    AHEAD_MAX_BYTES,
    AHEAD_WRITE_BYTES,
    DURABILITY_INTERVAL_MS,
    SEGMENT_BYTES,
    TRANSIENT_SPILL_BYTES,
)
from harebell.store.log import log_index
from harebell.store.log.durable_log import DurableLog
from harebell.store.log.handles import Handles
from harebell.store.log.loaded_offsets import LoadedOffsets
from harebell.store.log.segment import Segment
from harebell.store.log.segmented_log import SegmentedLog
from harebell.store.log.spill import Spilling
from harebell.store.log.transient_log import TransientLog
from harebell.store.log.unreadable import refused
from harebell.store.recovery import Recovery
from harebell.store.redo import Redo

QUEUES = "queues"
TRANSIENT = "transient"
KEPT = "kept"
"""The directory of segments that a backup still copies."""
_DIGITS = 32
_ERA_DIGITS = 16
_SPILLED = TRANSIENT_SPILL_BYTES


class DiskStore(Store):
    """Logs and definitions in one directory.

    Args:
        files: the data directory.
        definitions: what is declared.
        gauge: counts what is in memory.
        clock: the time of day.
        rng: random bytes, for identities.
        report: called with a level ("warning", "error") and a text.
        segment_bytes: the size of a segment, unless a log has its own.
        ahead_from: the size of a segment from which space is written ahead of its records.
        clean: whether the last process says that it closed every log in good order.
        indexes: whether the indexes of logs and segments are used; without them all is read.

    Attributes:
        interval_ms: milliseconds of a durability "interval" that has none.
        work: what the slices of long writes are counted on.
        pressed: whether memory is short, so that transient messages go to disk.
        expected: how many segments each log shall have that was not opened yet, where the last
            process said so.
        owner_of: returns what begins a report of damage to the log of an identity.

    Raises:
        DiskError: the disk fails to read something.
        StoreError: the directory cannot be used.
    """

    interval_ms: int = DURABILITY_INTERVAL_MS

    def __init__(
        self,
        files: Files,
        definitions: Definitions,
        gauge: Gauge,
        clock: Clock,
        rng: Callable[[int], bytes],
        report: Callable[[str, str], None],
        segment_bytes: int = SEGMENT_BYTES,
        clean: bool = False,
        ahead_from: int = AHEAD_FROM_BYTES,
        *,
        indexes: bool = True,
    ) -> None:
        self.files = files
        self.definitions = definitions
        self.gauge = gauge
        self.clock = clock
        self.report = report
        self.handles = Handles(files)
        self.offsets = LoadedOffsets(files, self.handles, indexes=indexes)
        self.redo = Redo(files)
        self.commit: GroupCommit = GroupCommit(files, definitions, self.redo, self.handles)
        self.logs: dict[str, DurableLog] = {}
        self.pressed = False
        self._transient: dict[str, TransientLog] = {}
        self._spilling: Spilling | None = None
        self._lags: dict[str, int] = {}
        self._rng = rng
        # Identities of logs that had nothing on disk at the start.
        self._new: set[str] = set()
        self._segment_bytes = segment_bytes
        self._clean = clean
        self._ahead_from = ahead_from
        self._indexes = indexes
        self.work = Work()
        self._refused: dict[str, int] = {}
        self.owner_of: Callable[[str], str] = lambda _identity: ""
        try:
            files.make_directory(QUEUES)
            files.sync_directory("")
        except OSError as error:
            raise refused("cannot use the data directory", error) from None
        self.expected = self._inventory() if clean else {}
        self._finish_commit()

    def _inventory(self) -> dict[str, int]:
        try:
            return inventory.read(self.files)
        except OSError as error:
            raise refused("cannot read how many segments there are", error) from None

    def _finish_commit(self) -> None:
        """Finish the writes of a transaction that the last process began."""
        try:
            done = self.redo.replay()
        except OSError as error:
            raise refused("cannot finish the last transaction", error) from None
        if done:
            self.report(
                "warning", f"the end came amid a commit: {done} bytes of a transaction are written"
            )

    def new_identity(self) -> str:
        """Return a new, unique identity for a log: 32 hexadecimal digits."""
        identity = self._rng(_DIGITS // 2).hex()
        self._new.add(identity)
        return identity

    def new_era(self) -> str:
        """Return a new, unique name of an era: 16 hexadecimal digits."""
        return self._rng(_ERA_DIGITS // 2).hex()

    def set_durability(self, identity: str, durability: Durability | None) -> None:
        """Set the durability of the logs of an identity; None for the default."""
        lag = None if durability is None else lag_of(durability, self.interval_ms)
        if lag == self._lags.get(identity):
            return
        if lag is None:
            self._lags.pop(identity, None)
        else:
            self._lags[identity] = lag
        if lag == 0:
            # A queue whose messages are on disk must be on disk itself.
            self.definitions.be_durable()
        for log in self.logs.values():
            if log.identity.partition("-")[0] == identity:
                self.files.delay(log.directory, lag)

    def take_back(self, identity: str, position: int) -> None:
        """Remove, at the start, the rows of an uncommitted batch from a position on."""
        self._refused[identity] = position

    def open_log(
        self, identity: str, *, durable: bool, keep_all: bool = False, segment_bytes: int = 0
    ) -> Log:
        """Open the log of an identity: with its records if it is durable, empty if it is new.

        Raises:
            DiskError: the disk fails to read it.
            StoreError: the disk refuses to give it.
        """
        if not durable:
            transient = self._transient[identity] = TransientLog(self, identity)
            return transient
        log = DurableLog(self, identity, keep_all, segment_bytes or self._segment_bytes)

        def report(level: str, text: str) -> None:
            self.report(level, f"{self.owner_of(identity)}{text}")

        # A new log has no files, so declaring a queue reads nothing and cannot fail here.
        if identity.partition("-")[0] not in self._new:
            try:
                recovered = Recovery(
                    self.files,
                    identity,
                    log.directory,
                    report,
                    offsets=self.offsets,
                    index=self._indexes,
                ).run()
            except OSError as error:
                raise refused(f"cannot read the log {log.directory}", error) from None
            if self._clean and recovered.closed:
                # Only after a clean end: otherwise the record `closed` may be that of an earlier
                # process, and the last one has delivered more without a chance to record it.
                recovered.seen = recovered.handed
            elif self._clean and recovered.segments and not recovered.damaged:
                recovered.seen = recovered.segments[-1].positions.end()
                report(
                    "error",
                    f"{log.directory}: bytes are missing at its end, although it was closed "
                    "in good order",
                )
            log.adopt(recovered)
            if identity in self._refused:
                rows = log.take_back(self._refused.pop(identity))
                report(
                    "warning", f"{log.directory}: {rows} rows of a batch go: it was not committed"
                )
            missing = self.expected.pop(identity, 0) - len(recovered.segments)
            if missing > 0 and not recovered.damaged:
                report("error", f"{log.directory}: {missing} of its segments are missing")
        self.logs[identity] = log
        lag = self._lags.get(identity.partition("-")[0])
        if lag is not None:
            self.files.delay(log.directory, lag)
        return log

    def clean(self, identities: Iterable[str]) -> bool:
        """Remove, at the start, files of transient queues, and find logs without a definition.

        Args:
            identities: of the logs that belong to a queue.

        Returns:
            Whether there are logs that belong to no queue; they are left alone.

        Raises:
            OSError: the disk refuses.
        """
        inventory.forget(self.files)
        for directory in self.files.names(TRANSIENT):
            self._empty(f"{TRANSIENT}/{directory}")
        with suppress(FileNotFoundError):
            self._empty(KEPT)
        known = {identity.partition("-")[0] for identity in identities} | {
            BRANCH_LOG,
            PUBLISHER_LOG,
            JOB_LOG,
        }
        dropped = {key[0] for key, _ in self.definitions.load("dropped")}
        unclaimed = False
        for directory in self.files.names(QUEUES):
            identity = directory.partition("-")[0]
            if identity in dropped:
                self._empty(f"{QUEUES}/{directory}")
            elif identity not in known:
                unclaimed = True
        if dropped:
            # Before the definitions forget these logs: if the power failed after that, a directory
            # that came back would look like a log that lost its queue.
            self.files.sync_directory(QUEUES)
        for identity in dropped:
            self.definitions.drop("dropped", (identity,))
        return unclaimed

    def close(self) -> None:
        """Close cleanly: perform batches until none is left, then `shut`."""
        self.commit.close_up()
        for log in self.logs.values():
            log.close()

    def describe(self) -> None:
        """Store the inventory and the indexes for the next start, when nothing changes any more."""
        for log in self.logs.values():
            self._describe(log)
        inventory.write(
            self.files, {identity: len(log.segments) for identity, log in self.logs.items()}
        )

    def _describe(self, log: DurableLog) -> None:
        try:
            index = log.index()
            if index is not None:
                log_index.write(self.files, log.directory, index, log.seed)
        except OSError:
            # The next start reads all segments then. An older index would be right too.
            log_index.remove(self.files, log.directory)

    def shut(self) -> None:
        """Close every file."""
        self.redo.close()
        self.handles.close_all()

    # --- for the logs ---------------------------------------------------------------------------

    def closed(self, log: SegmentedLog) -> None:
        """Remove the files of a deleted log, after a restart if necessary."""
        self._new.discard(log.identity.partition("-")[0])
        self._transient.pop(log.identity, None)
        if self.logs.pop(log.identity, None) is not None:
            self.definitions.put("dropped", (log.identity,), {})
            self._lags.pop(log.identity.partition("-")[0], None)
            self.files.delay(log.directory, None)

    def removed(self, log: DurableLog) -> None:
        """Note that the files of a deleted log are removed."""
        self.definitions.drop("dropped", (log.identity,))
        self.commit.waiting = True

    def write_now(
        self, segment: Segment, directory: str, data: bytes | memoryview, offset: int
    ) -> None:
        """Write bytes of a segment outside a batch, without a sync.

        Raises:
            OSError: the disk refuses.
        """
        file = self.file_of(segment, directory)
        try:
            write_all(file, data, offset)
        finally:
            file.close()

    def file_of(self, segment: Segment, directory: str) -> File:
        """Return the open file of a segment for writes outside a batch.

        Raises:
            OSError: the disk refuses.
        """
        # The batch that creates the file may be in progress.
        # Nothing is assumed about the batch that creates the file: this write may come first.
        self.files.make_directory(directory)
        return self.files.open(segment.path, create=True)

    def stretch(self, segment: Segment, byte_count: int) -> int:
        """Return how much space to write ahead in a segment that gets so many bytes.

        The space doubles, so a queue with little in it has little more on disk.
        """
        end = segment.end()
        if end <= segment.ahead or end < self._ahead_from or byte_count > AHEAD_WRITE_BYTES:
            return 0
        # Not beyond the limit of the segment, where its records end.
        return max(0, min(end, AHEAD_MAX_BYTES, segment.limit - end))

    def go_on(self, step: Step) -> None:
        """Write or read a large message, in several turns if necessary."""
        if not step():
            self.work.later(step)

    def press(self, pressed: bool) -> None:
        """Set whether memory is short: then transient messages go to disk, in several turns."""
        self.pressed = pressed
        if pressed and (self._spilling is None or self._spilling.done):
            logs = [log for log in self._transient.values() if log.in_memory() >= _SPILLED]
            self._spilling = Spilling(logs, self.work)
            if logs:
                self.go_on(self._spilling.go_on)

    def unspill(self, segment: Segment) -> None:
        """Remove a segment of a transient log."""
        self.handles.close(segment)
        try:
            self.files.remove(segment.path)
        except OSError as error:
            # The next start empties the directory.
            self.report("warning", f"cannot remove {segment.path}: {error}")

    def _empty(self, directory: str) -> None:
        for name in self.files.names(directory):
            self.files.remove(f"{directory}/{name}")
        self.files.remove_directory(directory)
