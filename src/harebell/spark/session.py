"""A Spark session with defaults that fit one machine and streams of messages.

Spark's own defaults are for clusters: 200 shuffle partitions, a web server, a checkpoint writer
that forks processes, and addresses that other machines can reach. Settings of a program override
these. With the master of a cluster the session keeps Spark's defaults for clusters, and sends
Harebell to the executors. Nothing else changes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from harebell.spark.catalog import catalog_settings
from harebell.spark.runtime import shipping
from harebell.spark.runtime.java import SessionError, find_java
from harebell.spark.runtime.masters import Master, master_of
from harebell.spark.runtime.spark_home_cache import SparkHomeCache, find_cache, make_overlay
from harebell.spark.runtime.startup_lines import silence_pandas, start_gateway

__all__ = ["SessionError", "build_session", "defaults"]

_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
_LOOPBACK = "127.0.0.1"
_ANYWHERE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "100",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
    # A speculative second attempt would publish twice with an at-least-once sink.
    "spark.speculation": "false",
    "spark.log.level": "ERROR",
}


def defaults(
    cores: int, *, short_lived: bool = False, master: Master | None = None
) -> dict[str, str]:
    """Return the default settings.

    Args:
        cores: how many tasks run at a time on this machine.
        short_lived: whether fast start matters more than throughput over hours.
        master: where tasks run; None for threads on this machine.
    """
    master = master or master_of(f"local[{cores}]")
    settings = {"spark.master": master.url, **_ANYWHERE}
    if master.here:
        settings["spark.driver.host"] = _LOOPBACK
        settings["spark.driver.bindAddress"] = _LOOPBACK
    if master.threads:
        settings |= {
            "spark.sql.shuffle.partitions": str(cores),
            "spark.default.parallelism": str(cores),
            # Uses rename, which is atomic on local disks only.
            "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
            "spark.driver.memory": "1g",
        }
    if short_lived:
        settings[_JAVA_OPTIONS] = _SHORT_LIVED
    return settings


def build_session(
    name: str,
    *,
    master: str | None = None,
    cores: int | None = None,
    short_lived: bool = False,
    settings: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> SparkSession:
    """Start a session, or return the active one.

    Args:
        name: of the application.
        master: where tasks run (`runtime.masters`), which may be the address of a server
            of Spark Connect; None for what the settings say, or else this machine.
        cores: how many tasks run at a time on this machine; None for all cores.
        short_lived: whether fast start matters more than throughput over hours.
        settings: override the defaults.
        quiet: whether to leave out the lines that Spark prints at each start (`runtime.
            startup_lines`).

    Raises:
        SessionError: no suitable Java was found, or the master is invalid or does not answer.
    """
    if quiet:
        silence_pandas()
    given = dict(settings or {})
    cores = cores or os.cpu_count() or 1
    url = master or given.pop("spark.remote", None) or given.get("spark.master")
    spark_master = master_of(url or f"local[{cores}]")
    spark_master.check_answers()
    if spark_master.connect:
        from harebell.spark.runtime.connect_session import connect_session

        given.pop("spark.master", None)
        return connect_session(name, spark_master, given)
    given["spark.master"] = spark_master.url
    java = find_java()
    cache = find_cache(java)
    _prepare_environment(spark_master, cache)
    chosen = defaults(cores, short_lived=short_lived, master=spark_master) | given
    chosen |= catalog_settings(chosen)
    # The program's own options stay as they are: `warming` writes an archive with them, and must
    # not read one.
    if _JAVA_OPTIONS not in given:
        chosen[_JAVA_OPTIONS] = java_options(cache, chosen.get(_JAVA_OPTIONS, ""))
    if not spark_master.threads:
        chosen |= shipping.settings(shipping.make_archive(cache.directory), chosen)
    if quiet:
        start_gateway(chosen)
    builder = SparkSession.builder.appName(name)
    for key, value in chosen.items():
        if value:
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    # Also for a session that was active before, whose settings cannot be changed.
    session.sparkContext.setLogLevel("ERROR")
    return session


def java_options(cache: SparkHomeCache, options: str) -> str:
    """Return options for a JVM, with the class-data archive if there is one."""
    if not cache.archive.is_file():
        return options
    # Without the two log options the JVM warns of a stale archive, which it only ignores.
    archive = f"-XX:SharedArchiveFile={cache.archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
    words = [word for word in options.split() if word != "-Xshare:auto"]
    return " ".join([*words, "-Xshare:auto", archive])


def _prepare_environment(master: Master, cache: SparkHomeCache) -> None:
    """Set the environment of Spark's launcher and its Python workers, which are processes."""
    environment = os.environ
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    environment.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.here:
        environment.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    if cache.given:
        return
    environment["SPARK_HOME"] = str(cache.spark)
    if master.threads:
        try:
            environment["SPARK_HOME"] = str(make_overlay(cache))
        except OSError:
            # The overlay only makes workers start faster; a read-only cache is no error.
            return
