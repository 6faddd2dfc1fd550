"""Report claims that the checkpoint has and the broker has not, each of them once."""

from __future__ import annotations

from harebell.base.limits import LEASE_GROUP_KEPT_MS
from harebell.spark.options.source_options import Options
from harebell.spark.reading.data_loss_policy import DataLossPolicy
from harebell.spark.reading.leased.group import Group
from harebell.spark.reading.offsets import ClaimOffset


class MissingClaims:
    """The missing claims of one queue, as far as they were reported.

    Args:
        options: which queue, and whether missing messages end the query.
    """

    def __init__(self, options: Options) -> None:
        self._queue = options.queue
        self._lease_timeout = options.lease_timeout
        self._losses = DataLossPolicy(options)
        # By the eras of the offset if another history has the claims: their numbers may come again.
        self._reported: dict[str, list[range]] = {}
        # Last numbers of committed claims that were reported because the checkpoint is older.
        self._reported_commits: set[int] = set()

    def report_new_log(self, group: Group, offset: ClaimOffset) -> None:
        """Report that the queue was declared again since the checkpoint.

        Raises:
            DataLoss: the query must fail.
        """
        self._losses.report_new_log(self._queue, offset.generation, group.generation)

    def report_processed(
        self, group: Group, offset: ClaimOffset, shared: int, numbers: list[range]
    ) -> None:
        """Report missing claims up to an offset that Spark has committed.

        Claims that were reported when their micro-batch was planned are no loss: Spark has
        committed the micro-batch without them.

        Raises:
            DataLoss: the query must fail.
        """
        missing = [
            part for each in numbers for part in without(each, self._like(offset, shared, each))
        ]
        if missing:
            self._report(
                offset,
                shared,
                missing,
                f"{claims_text(missing)} of group {group.name!r} on queue {self._queue!r}, which "
                "Spark has processed, went back to the queue before the broker knew that: "
                f"{self._reason(offset, shared)}. Their messages come again",
            )

    def report_planned(self, offset: ClaimOffset, shared: int, missing: list[range]) -> None:
        """Report missing claims of a planned micro-batch that ends at an offset.

        Raises:
            DataLoss: the query must fail.
        """
        if missing:
            self._report(
                offset,
                shared,
                missing,
                f"{claims_text(missing)} of group {offset.group!r} on queue {self._queue!r}, which "
                "Spark had planned for the micro-batch that did not end, went back to the queue: "
                f"{self._reason(offset, shared)}. Their messages come again in later "
                "micro-batches; if the sink has nothing of this one, they come once",
            )

    def report_older_checkpoint(self, group: Group, offset: ClaimOffset) -> None:
        """Report claims that were committed for a later offset than the one to go on from.

        Raises:
            DataLoss: the query must fail.
        """
        if group.committed in self._reported_commits:
            return
        numbers = [range(offset.claim + 1, group.committed + 1)]
        self._losses.report(
            f"this checkpoint is older than what was read with it: it does not know "
            f"{claims_text(numbers)} of group {group.name!r} on queue {self._queue!r}, read and "
            "acknowledged since. It was put back to an older state, or copied for two queries. "
            "Their rows come once, but the numbers of their micro-batches come again, and a sink "
            "that goes by them passes over the next ones: put the newer checkpoint back"
        )
        self._reported_commits.add(group.committed)

    def _report(self, offset: ClaimOffset, shared: int, missing: list[range], text: str) -> None:
        # First: if this raises, the next call has to raise as well.
        self._losses.report(text)
        for numbers in missing:
            self._like(offset, shared, numbers).append(numbers)

    def _like(self, offset: ClaimOffset, shared: int, numbers: range) -> list[range]:
        """Return the reported claims of the history that has some numbers."""
        return self._reported.setdefault(offset.eras if numbers.start > shared else "", [])

    def _reason(self, offset: ClaimOffset, shared: int) -> str:
        """Return why claims of a group may be open no longer."""
        if shared < offset.claim:
            days = LEASE_GROUP_KEPT_MS // 86_400_000
            return (
                f"the group was not used for {days} days, an operator removed it, or the broker's "
                "data is of an older date"
            )
        return (
            f"no query held the group for {self._lease_timeout:g} s (leaseTimeout), an "
            "operator released them, or they did not outlive a restart of the broker"
        )


def without(numbers: range, others: list[range]) -> list[range]:
    """Return numbers without others: a gap may have very many, so none is listed."""
    parts = [numbers]
    for other in others:
        parts = [
            part
            for each in parts
            for part in (
                range(each.start, min(each.stop, other.start)),
                range(max(each.start, other.stop), each.stop),
            )
            if part
        ]
    return parts


def claims_text(numbers: list[range]) -> str:
    """Return how many claims these are, and the first and last number, in words."""
    count, first, last = sum(map(len, numbers)), numbers[0].start, numbers[-1].stop - 1
    return f"claim {first}" if count == 1 else f"{count} claims from {first} to {last}"
