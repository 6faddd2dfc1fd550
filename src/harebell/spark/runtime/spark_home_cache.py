"""Cache what makes Spark start faster: an overlay of SPARK_HOME, and a class-data archive.

    <cache>/harebell/spark/<key>/home/       SPARK_HOME for sessions on this machine
                                python/lib/  the py4j zip only
                                jars, bin... links to the installed pyspark
    <cache>/harebell/spark/<key>/classes.jsa class-data archive, made by `harebell spark warm`

An installed pyspark contains itself a second time as `pyspark.zip`, which Spark puts first in the
path of its Python workers. The zip has no compiled Python, so each worker compiles pyspark again,
for about a second. The overlay has no such zip, and workers import the installed package. With the
class-data archive the JVM need not read and verify some ten thousand classes again.

The key is a hash of what invalidates either: another Java, another pyspark, other jars.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from harebell.spark.runtime.java import Java, SessionError

_LINKED = ("bin", "data", "jars", "licenses", "sbin")


@dataclass(frozen=True)
class SparkHomeCache:
    """The directories for one Java and one Spark.

    Args:
        spark: the Spark that is installed, or that SPARK_HOME names.
        directory: the cached files for it.
        given: whether SPARK_HOME names it, so that no overlay may replace it.
    """

    spark: Path
    directory: Path
    given: bool

    @property
    def archive(self) -> Path:
        """The class-data archive, which may not exist yet."""
        return self.directory / "classes.jsa"

    @property
    def overlay(self) -> Path:
        """The overlay, which may not exist yet."""
        return self.directory / "home"


def cache_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return Harebell's cache directory: in XDG_CACHE_HOME, else in ~/.cache."""
    environment = os.environ if environment is None else environment
    given = environment.get("XDG_CACHE_HOME", "")
    # The XDG specification requires that relative paths are ignored.
    base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return base / "harebell" / "spark"


def installed_spark() -> Path:
    """Return the directory of the installed pyspark.

    Raises:
        SessionError: it is not installed.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SessionError("Spark is not installed: pip install 'harebell[spark]'")
    return Path(spec.origin).resolve().parent


def find_cache(java: Java, environment: Mapping[str, str] | None = None) -> SparkHomeCache:
    """Return the cache for a Java and the Spark that would run with it.

    Raises:
        SessionError: Spark is not installed.
    """
    environment = os.environ if environment is None else environment
    root = cache_directory(environment)
    home = environment.get("SPARK_HOME", "")
    # Ignore a SPARK_HOME that an earlier session set to an overlay.
    given = bool(home) and not Path(home).is_relative_to(root)
    spark = Path(home) if given else installed_spark()
    jars = spark / "jars"
    if not jars.is_dir():
        raise SessionError(f"{spark} is no Spark: it has no directory jars; correct SPARK_HOME")
    directory = jars.resolve()
    parts = (
        java.version,
        str(directory),
        str(directory.stat().st_mtime_ns),
        str(len(list(directory.iterdir()))),
    )
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return SparkHomeCache(spark, root / key, given)


def make_overlay(cache: SparkHomeCache) -> Path:
    """Return the overlay; make it if missing. Return the Spark itself if SPARK_HOME names one.

    Raises:
        OSError: the cache cannot be written.
    """
    if cache.given or cache.overlay.is_dir():
        return cache.spark if cache.given else cache.overlay
    # Rename into place: atomic, also when two sessions start at once.
    draft = cache.directory / f"home-{os.getpid()}-{secrets.token_hex(4)}"
    library = draft / "python" / "lib"
    library.mkdir(parents=True)
    try:
        for name in _LINKED:
            if (cache.spark / name).exists():
                (draft / name).symlink_to(cache.spark / name)
        for archive in (cache.spark / "python" / "lib").glob("py4j-*.zip"):
            (library / archive.name).symlink_to(archive)
        try:
            draft.rename(cache.overlay)
        except OSError:
            # Another session was first, and its overlay is the same.
            if not cache.overlay.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return cache.overlay
