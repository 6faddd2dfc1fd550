"""What a query does when expected messages are missing: the option `failOnDataLoss`."""

from __future__ import annotations

import logging

from harebell.spark.options.source_options import Options
from harebell.spark.reading.errors import SourceError

_LOG = logging.getLogger("harebell.spark")


class DataLoss(SourceError):
    """Expected messages are missing."""


class DataLossPolicy:
    """End a query because of missing messages, or only log a warning.

    Args:
        options: say which.
    """

    def __init__(self, options: Options) -> None:
        self._fail = options.fail_on_data_loss

    def report(self, text: str) -> None:
        """Report missing messages.

        Raises:
            DataLoss: the query must fail.
        """
        if self._fail:
            raise DataLoss(f"{text}; the option failOnDataLoss=false reads on")
        _LOG.warning("%s", text)

    def report_deleted_queue(self, queue: str) -> None:
        """Report that a queue was deleted which a pattern had matched, or which had dead letters.

        Raises:
            DataLoss: the query must fail.
        """
        self.report(
            f"queue {queue!r}, which the query was reading, was deleted; messages that were not "
            "read are gone"
        )

    def report_new_log(self, queue: str, before: str, now: str) -> None:
        """Report that a queue was deleted and declared again, with a new log.

        Raises:
            DataLoss: the query must fail.
        """
        self.report(
            f"queue {queue!r} was deleted and declared again since the checkpoint: its log was "
            f"{before} and is {now}; messages that were in the old one are gone"
        )
