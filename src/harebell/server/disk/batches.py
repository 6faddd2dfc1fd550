"""What a flusher needs of a batch; `harebell.store.commit` gathers the batches."""

from __future__ import annotations

from typing import Any, Protocol


class DirectWork(Protocol):
    """A batch that only writes and syncs; see `harebell.store.commit`."""

    writes: list[tuple[int, bytes, int]]
    syncs: list[int]
    unsynced: bool
    paths: list[str]
    creates: dict[int, str]
    last: list[int]
    repeated: dict[int, int]
    byte_count: int

    def adopt(self, opened: dict[int, int]) -> None:
        """Take the descriptors of the created files, by the indices of their writes."""


class Removal(Protocol):
    """A segment to be removed; see `harebell.store.removal`."""

    stalled: OSError | None
    failed: Exception | None

    def perform(self) -> None:
        """Remove it."""


class Batch(Protocol):
    """A batch; see `harebell.store.commit`."""

    stalled: OSError | None
    failed: Exception | None
    records: int
    removals: list[Any]

    @property
    def byte_count(self) -> int:
        """How many bytes it writes."""

    def direct(self) -> DirectWork | None:
        """The batch as writes and syncs; None if it is more than that."""

    def is_small(self, byte_count: int) -> bool:
        """Whether it only writes, to open files, and at most so many bytes."""

    def perform(self, *, removing: bool = True) -> None:
        """Write and sync this batch."""


class Nothing:
    """An empty batch, after which deferred syncs are done.

    Args:
        failed: what has failed outside of any batch.
    """

    stalled: OSError | None = None
    records = byte_count = 0

    def __init__(self, failed: Exception | None = None) -> None:
        self.failed = failed
        self.removals: list[Any] = []

    def direct(self) -> None:
        """No-op: the batch is empty."""

    def is_small(self, byte_count: int) -> bool:
        """True: the batch is empty."""
        return byte_count >= 0

    def perform(self, *, removing: bool = True) -> None:
        """No-op: the batch is empty."""
