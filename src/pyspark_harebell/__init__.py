"""What makes Spark know the format `harebell` without registration.

Spark imports every top-level package whose name begins with `pyspark_` and takes its
`DefaultSource`.
"""

from typing import Any

from harebell.spark.runtime.connect_pickle import recipe
from harebell.spark.source import QueueSource

__all__ = ["DefaultSource"]


class DefaultSource(QueueSource):
    """The data source under the name that Spark looks for."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        return recipe(self.options) or super().__reduce__()
