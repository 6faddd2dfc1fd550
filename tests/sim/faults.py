"""Faults for the simulated disk: the N-th call fails, once or for ever, or the power goes."""

from __future__ import annotations

import errno

from tests.sim.disk import PowerCut, SimDisk, error

SHORT = -1
"""Not an error: a write that writes less than it was asked to."""

WRITES = ("write", "truncate")
SYNCS = ("sync", "sync_directory", "sync_all")
SPACE = (*WRITES, "create", "make_directory", "rename", "transaction")
FAULTS: dict[str, tuple[int, tuple[str, ...]]] = {
    "no space": (errno.ENOSPC, SPACE),
    "over quota": (errno.EDQUOT, SPACE),
    "bad read": (errno.EIO, ("read", "names")),
    "bad write": (errno.EIO, (*WRITES, "create", "make_directory", "rename", "remove")),
    "bad sync": (errno.EIO, (*SYNCS, "transaction")),
    "no space at sync": (errno.ENOSPC, SYNCS),
    "short write": (SHORT, ("write",)),
    "too many files": (errno.EMFILE, ("open", "create", "names", "sync_directory")),
}
"""The faults by name: what is raised, and by which operations."""


class FailNth:
    """A hook: the N-th operation of some kinds fails, and all after it when it is for ever.

    Args:
        nth: which one, from 1.
        number: an errno, or `SHORT`.
        kinds: which operations count.
        forever: whether the ones after it fail too.

    Attributes:
        count: how many operations of these kinds there were.
        struck: how many failed.
        failed: the kind and path of the first that failed.
    """

    def __init__(self, nth: int, number: int, kinds: tuple[str, ...], forever: bool) -> None:
        self.nth = nth
        self.number = number
        self.kinds = frozenset(kinds)
        self.forever = forever
        self.count = 0
        self.struck = 0
        self.failed = ""

    def __call__(self, operation: int, kind: str, path: str) -> int | None:
        """What the disk asks before every operation."""
        if kind not in self.kinds:
            return None
        self.count += 1
        if self.count < self.nth or (self.count > self.nth and not self.forever):
            return None
        self.failed = self.failed or f"{kind} of {path or '.'}"
        self.struck += 1
        if self.number == SHORT:
            return 1 + self.count % 7
        raise error(self.number, path)

    def mend(self) -> None:
        """The disk is well again."""
        self.nth = self.count + 1 << 30
        self.forever = False


class CutNth:
    """A hook: the power goes before the N-th operation.

    Args:
        disk: which disk's power it is.
        nth: which operation, from 1 on from now.
        kinds: which operations count; all of them without any.
        apart: how the names of files end whose operations do not count.
    """

    def __init__(
        self, disk: SimDisk, nth: int, kinds: frozenset[str] = frozenset(), apart: str = "/"
    ) -> None:
        self.apart = apart
        self.disk = disk
        self.left = nth
        self.kinds = kinds

    def __call__(self, operation: int, kind: str, path: str) -> int | None:
        """What the disk asks before every operation."""
        if (self.kinds and kind not in self.kinds) or path.endswith(self.apart):
            return None
        self.left -= 1
        if self.left <= 0:
            self.disk.cut_power()
            raise PowerCut
        return None
