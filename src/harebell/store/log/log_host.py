"""The store as its logs use it.

`DiskStore` imports its logs, so they are typed by this protocol and not by the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from harebell.base.clock import Clock
    from harebell.base.gauge import Gauge
    from harebell.base.ports import File, Files
    from harebell.base.work import Step, Work
    from harebell.store.commit import GroupCommit
    from harebell.store.log.handles import Handles
    from harebell.store.log.loaded_offsets import LoadedOffsets
    from harebell.store.log.segment import Segment


class LogHost(Protocol):
    """The part of `DiskStore` that logs use.

    Attributes:
        pressed: whether memory is short, so that transient messages go to disk.
    """

    pressed: bool

    files: Files
    gauge: Gauge
    clock: Clock
    commit: GroupCommit
    handles: Handles
    offsets: LoadedOffsets
    report: Callable[[str, str], None]
    work: Work

    def closed(self, log: Any) -> None:
        """Note that a log is deleted."""

    def removed(self, log: Any) -> None:
        """Note that the files of a deleted log are removed."""

    def write_now(
        self, segment: Segment, directory: str, data: bytes | memoryview, offset: int
    ) -> None:
        """Write bytes of a segment without a batch, and without a sync."""

    def file_of(self, segment: Segment, directory: str) -> File:
        """Return a segment's file, open for writes without a batch."""

    def stretch(self, segment: Segment, byte_count: int) -> int:
        """Return how many bytes of space to write ahead in a segment."""

    def go_on(self, step: Step) -> None:
        """Read or write a large message, in several turns if necessary."""

    def unspill(self, segment: Segment) -> None:
        """Remove a segment of a transient log."""
