"""Sessions over Spark Connect: the driver is another process.

The server has its own Python, beside its driver and in its executors, and has looked for data
sources when it started. So the session sends the Python part of Harebell as an artifact and
registers the format. Compiled packages must be installed there: msgspec and google-crc32c.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec

from pyspark.sql import SparkSession

from harebell.spark.runtime import shipping
from harebell.spark.runtime.java import SessionError
from harebell.spark.runtime.masters import Master
from harebell.spark.runtime.spark_home_cache import cache_directory

NEEDED = ("grpc", "grpc_status", "google.rpc", "google.protobuf")
"""Modules of other packages that a client of Spark Connect imports."""


def connect_session(name: str, master: Master, settings: Mapping[str, str]) -> SparkSession:
    """Return a session on a server of Spark Connect.

    Args:
        name: of the application.
        master: the server.
        settings: of the session; those of the server's JVM cannot be changed.

    Raises:
        SessionError: the packages of Spark Connect are not installed here.
    """
    require(NEEDED)
    archive = shipping.make_archive(cache_directory() / "artifacts", shipping.python_files())
    builder = SparkSession.builder.appName(name).remote(master.url)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.addArtifacts(str(archive), pyfile=True)
    # Imported here: registration pickles it by reference to the artifact.
    from pyspark_harebell import DefaultSource

    session.dataSource.register(DefaultSource)
    return session


def require(modules: Iterable[str]) -> None:
    """Check that modules can be imported.

    Raises:
        SessionError: one cannot be imported.
    """
    for module in modules:
        try:
            spec = find_spec(module)
        except ModuleNotFoundError:
            spec = None
        if spec is None:
            raise SessionError(
                f"Spark Connect needs the module {module}, and it is not installed: "
                "pip install 'pyspark[connect]'"
            )
