"""A standalone cluster of Spark: a master and two workers, each a process of its own.

Each worker has an address of its own, because Spark makes no second attempt of a task on the same
host.
"""

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
_HOSTS = ("127.0.0.1", "127.0.0.2")


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
    leader = [*program, "org.apache.spark.deploy.master.Master", "--port", str(port)]
    worker = [*program, "org.apache.spark.deploy.worker.Worker"]
    worker += ["--cores", str(cores), "--memory", memory]
    commands = [(_HOSTS[0], leader), *((host, worker) for host in _HOSTS)]
    environment = environment | {
        "SPARK_HOME": str(installed_spark()),
        "SPARK_WORKER_DIR": str(directory / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    logs = [directory / f"{name}.log" for name in ("leader", "one", "other")]
    with ExitStack() as running:
        for (host, command), log in zip(commands, logs, strict=True):
            words = [*command, "--host", host, "--webui-port", "0"]
            words += [] if command is leader else [master]
            here = environment | {"SPARK_LOCAL_IP": host}
            running.enter_context(family(words, log, here, directory))
        registered = eventually(
            lambda: all(_REGISTERED in log.read_text() for log in logs[1:]), _PATIENCE_S
        )
        assert registered, [log.read_text()[-2_000:] for log in logs]
        yield master
