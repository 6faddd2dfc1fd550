"""The same question to Spark: the mean delays of the flights in the stream."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from harebell.cli.demo.traffic import STREAM, Sums

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUESTION = """
    SELECT flight.origin, flight.hour, sum(flight.dep_delay) AS minutes,
           count(flight.dep_delay) AS flights
    FROM (SELECT from_json(CAST(value AS STRING),
                           'origin STRING, hour INT, dep_delay INT') AS flight
          FROM departures)
    WHERE flight.dep_delay IS NOT NULL
    GROUP BY flight.origin, flight.hour
"""


def missing() -> str:
    """Return what Spark needs and is not there, and how to get it; "" if it can run."""
    from harebell.spark.runtime.java import SessionError, find_java

    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            return f"{package} is not installed: pip install 'harebell[spark]'"
    try:
        find_java()
    except SessionError as error:
        return str(error)
    return ""


def open_session() -> SparkSession:
    """Start Spark on this machine."""
    from harebell.spark.session import build_session

    return build_session("harebell demo", short_lived=True, quiet=True)


def answer(session: SparkSession, url: str) -> Sums:
    """Return the sums that Spark finds in the stream."""
    source = session.read.format("harebell").option("url", url).option("queue", STREAM)
    source.option("startingOffsets", "earliest").load().createOrReplaceTempView("departures")
    return {
        (row["origin"], row["hour"]): (row["minutes"], row["flights"])
        for row in session.sql(_QUESTION).collect()
    }
