"""A standalone cluster of Spark: a master and two workers, each a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harebell.spark.runtime.spark_home_cache import installed_spark
from tests.patience import eventually
from tests.ports import free_port
from tests.spark.families import family

_REGISTERED = "Successfully registered with master"
_PATIENCE_S = 600.0


@contextmanager
def standalone(
    directory: Path, environment: dict[str, str], cores: int = 1, memory: str = "600m"
) -> Iterator[str]:
    """The address of a cluster, when both workers are there.

    Args:
        directory: for its files; workers have theirs in `work`.
        environment: of its processes.
        cores: of each worker.
        memory: of each worker.
    """
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    program = [str(installed_spark() / "bin" / "spark-class")]
    at = ["--host", "127.0.0.1", "--webui-port", "0"]
    leader = [*program, "org.apache.spark.deploy.master.Master", *at, "--port", str(port)]
    worker = [*program, "org.apache.spark.deploy.worker.Worker", *at]
    worker += ["--cores", str(cores), "--memory", memory, master]
    environment = environment | {
        "SPARK_HOME": str(installed_spark()),
        "SPARK_WORKER_DIR": str(directory / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    logs = [directory / f"{name}.log" for name in ("leader", "one", "other")]
    with ExitStack() as running:
        for command, log in zip((leader, worker, worker), logs, strict=True):
            running.enter_context(family(command, log, environment, directory))
        registered = eventually(
            lambda: all(_REGISTERED in log.read_text() for log in logs[1:]), _PATIENCE_S
        )
        assert registered, [log.read_text()[-2_000:] for log in logs]
        yield master
