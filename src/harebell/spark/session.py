"""A Spark session with defaults that fit one machine and streams of messages.

Spark's own defaults are for clusters: 200 shuffle partitions, a web server, a checkpoint writer
that forks processes, and addresses that other machines can reach. What a program sets itself wins.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from harebell.base.errors import HarebellError

_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


class SessionError(HarebellError):
    """Spark cannot be started here."""


def defaults(cores: int, *, short_lived: bool = False) -> dict[str, str]:
    """The settings.

    Args:
        cores: how many tasks run at a time.
        short_lived: whether starting fast matters more than running fast for hours.
    """
    settings = {
        "spark.master": f"local[{cores}]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.numRecentProgressUpdates": "100",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.scheduler.mode": "FAIR",
        "spark.speculation": "false",
        "spark.log.level": "ERROR",
    }
    if short_lived:
        settings["spark.driver.extraJavaOptions"] = _SHORT_LIVED
    return settings


def build_session(
    name: str,
    *,
    cores: int | None = None,
    short_lived: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a session, or take the one there is.

    Args:
        name: of the application.
        cores: how many tasks run at a time; None for all cores.
        short_lived: whether starting fast matters more than running fast for hours.
        settings: what differs from the defaults.

    Raises:
        SessionError: there is no Java.
    """
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise SessionError(
            "Spark needs Java 17, and there is no `java` here: "
            "apt-get install openjdk-17-jre-headless"
        )
    # Read by Spark's launcher and by its Python workers, which are processes of their own.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    chosen = defaults(cores or os.cpu_count() or 1, short_lived=short_lived)
    for key, value in (chosen | dict(settings or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
