"""The stream reader of a query whose options or columns are refused.

Spark 4.3 stops the reader when a query ends, also where no reader could be made; that second error
hides the first one. So the error is kept, and raised by the first call that asks for an offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from harebell.base.errors import HarebellError


class RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raise one error whatever Spark asks.

    Args:
        error: why there is no query.
    """

    def __init__(self, error: HarebellError) -> None:
        self._error = error

    def _refuse(self) -> NoReturn:
        raise self._error.with_traceback(None) from None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Raise the error."""
        self._refuse()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Raise the error."""
        self._refuse()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Raise the error."""
        self._refuse()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Raise the error."""
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Raise the error."""
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Raise the error."""
        self._refuse()

    def stop(self) -> None:
        """Do nothing: nothing was opened."""
