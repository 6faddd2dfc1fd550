"""Say that Spark's JVM has ended, where its next call would fail with an error of the connection.

The system ends it when memory is short, and systemd stops it together with its program. Then every
call of Spark raises another error of Py4J, and some cannot even be printed, because their text is
in the JVM.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from harebell.spark.runtime.java import SessionError

_ENDING_SECONDS = 2.0
"""A JVM that does not answer any more may need so long to end."""


def jvm_code(session: SparkSession, wait: float = 0.0) -> int | None:
    """Return the exit code of the JVM of a session; None if it runs, or is not on this machine.

    Args:
        session: of Spark.
        wait: seconds to wait for its end.
    """
    # A session of Spark Connect has neither: its JVM is another program's.
    context = getattr(session, "_sc", None)
    process: subprocess.Popen[bytes] | None = getattr(
        getattr(context, "_gateway", None), "proc", None
    )
    if process is None:
        return None
    try:
        return process.wait(wait) if wait else process.poll()
    except subprocess.TimeoutExpired:
        return None


@contextmanager
def named_jvm_end(session: SparkSession) -> Iterator[None]:
    """Convert errors of calls to a JVM that has ended.

    Args:
        session: of Spark.

    Raises:
        SessionError: the JVM has ended.
    """
    try:
        yield
    except Exception as error:
        # Other errors come from a JVM that answers, and need no wait for its end.
        lost = isinstance(error, OSError) or type(error).__module__.startswith("py4j.")
        code = jvm_code(session, _ENDING_SECONDS if lost else 0.0)
        if code is None:
            raise
        raise SessionError(
            f"Spark's JVM has ended with code {code}, killed or for lack of memory; what was "
            "committed stays, and a pipeline goes on from its checkpoint when it is run again"
        ) from None
