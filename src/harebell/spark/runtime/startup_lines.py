"""Start Spark's JVM without the lines that it prints at each start and that say nothing.

    JVM --stderr--> pipe --> a thread --every other line, unchanged--> stderr of this process

The lines are compared as a whole, so a warning is never hidden for what it contains. Those of the
JVM itself cannot be turned off by an option.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import warnings
from collections.abc import Mapping
from typing import IO

from harebell.spark.limits import SPARK_LAST_LINES_SECONDS

_JVM = re.compile(
    rb"WARNING: Using incubator modules: jdk\.incubator\.vector"
    rb"|\S+ \S+ WARN NativeCodeLoader: Unable to load native-hadoop library for your platform"
    rb"\.\.\. using builtin-java classes where applicable"
    rb"|Using Spark's default log4j profile: org/apache/spark/log4j2[\w-]*\.properties"
    rb'|Setting (?:default|Spark) log level to "\w+"\.?'
    rb"|To adjust logging level use sc\.setLogLevel\(newLevel\)\. For SparkR, use "
    rb"setLogLevel\(newLevel\)\."
)
_PANDAS = "PySpark does not yet fully support pandas"
_STDERR = 2
_begun = threading.Event()
"""Set when the JVM of this process was started here: later sessions begin in the same one."""


def is_noise(line: bytes) -> bool:
    """True if a line is one of those that are printed at each start."""
    return _JVM.fullmatch(line.rstrip(b"\r\n")) is not None


def pass_on(source: IO[bytes], target: int) -> None:
    """Copy lines to a descriptor until the source ends, without the noise."""
    with source:
        for line in source:
            if not is_noise(line):
                # The terminal may be closed; the JVM must still be able to write.
                with contextlib.suppress(OSError):
                    os.write(target, line)


def silence_pandas() -> None:
    """Ignore PySpark's warning of pandas 3, which is not used here."""
    warnings.filterwarnings("ignore", message=_PANDAS, category=FutureWarning)


def start_gateway(settings: Mapping[str, str]) -> None:
    """Start the JVM of this process, if none runs yet, with its lines passed on.

    Args:
        settings: of the session that begins in it.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if _begun.is_set() or SparkSession.getActiveSession() is not None:
        return
    _begun.set()
    conf = SparkConf()
    for name, value in settings.items():
        if value:
            conf.set(name, value)
    reading, writing = os.pipe()
    sys.stderr.flush()
    thread = threading.Thread(
        target=pass_on, args=(os.fdopen(reading, "rb"), _STDERR), name="jvm-lines", daemon=True
    )
    thread.start()
    try:
        with os.fdopen(writing, "wb") as stderr:
            # Signals to the group of this process, of Ctrl-C or `timeout`, are for this process:
            # it lets the micro-batch end first. The JVM ends with its standard input.
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                conf, popen_kwargs={"stderr": stderr, "process_group": 0}
            )
    except BaseException:
        _begun.clear()
        # The last lines of a JVM that does not start say why.
        thread.join(SPARK_LAST_LINES_SECONDS)
        raise
    # pyspark has no public call that takes a gateway.
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001
