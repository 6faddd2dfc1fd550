"""What makes Spark know the format `harebell` without registration.

Spark imports every top-level package whose name begins with `pyspark_` and takes its
`DefaultSource`.
"""

from harebell.spark.source import QueueSource

__all__ = ["DefaultSource"]


class DefaultSource(QueueSource):
    """The data source under the name that Spark looks for."""
