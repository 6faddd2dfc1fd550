"""The cache that Spark starts from: an overlay of SPARK_HOME, and a class-data archive.

    <cache>/harebell/spark/<key>/home/       SPARK_HOME for sessions on this machine
                                python/lib/  the py4j zip only
                                jars, bin... links to the installed pyspark
    <cache>/harebell/spark/<key>/classes.jsa class-data archive, made by `harebell spark warm`

An installed pyspark brings itself a second time as `pyspark.zip`, which Spark puts first into the
path of its Python workers. A zip has no compiled Python in it, so that each worker compiles
pyspark anew, for about a second. The overlay leaves the zip out, and workers import the installed
package. The archive saves the JVM from reading and checking some ten thousand classes again.

The key is a hash of what makes either invalid: another Java, another pyspark, other jars.
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
    """The folders of one Java and one Spark.

    Args:
        spark: the Spark that is installed, or that SPARK_HOME says.
        directory: what is cached for it.
        given: whether SPARK_HOME says it, so that no overlay may take its place.
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


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where Harebell keeps what it can make again: XDG_CACHE_HOME, else ~/.cache."""
    environment = os.environ if environment is None else environment
    given = environment.get("XDG_CACHE_HOME", "")
    # The specification of these folders says that relative ones are to be ignored.
    base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return base / "harebell" / "spark"


def installed_spark() -> Path:
    """The folder of the installed pyspark.

    Raises:
        SessionError: it is not installed.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SessionError("Spark is not installed: pip install 'harebell[spark]'")
    return Path(spec.origin).resolve().parent


def find_cache(java: Java, environment: Mapping[str, str] | None = None) -> SparkHomeCache:
    """The folders for a Java and the Spark that would run with it.

    Raises:
        SessionError: there is no Spark.
    """
    environment = os.environ if environment is None else environment
    root = cache_folder(environment)
    home = environment.get("SPARK_HOME", "")
    # An overlay that an earlier session set as SPARK_HOME counts as none.
    given = bool(home) and not Path(home).is_relative_to(root)
    spark = Path(home) if given else installed_spark()
    jars = spark / "jars"
    if not jars.is_dir():
        raise SessionError(f"{spark} is no Spark: it has no folder jars; correct SPARK_HOME")
    found = jars.resolve()
    parts = (
        java.version,
        str(found),
        str(found.stat().st_mtime_ns),
        str(len(list(found.iterdir()))),
    )
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return SparkHomeCache(spark, root / key, given)


def make_overlay(places: SparkHomeCache) -> Path:
    """The overlay, made when it is not there; the Spark itself where SPARK_HOME says one.

    Raises:
        OSError: the cache cannot be written.
    """
    if places.given or places.overlay.is_dir():
        return places.spark if places.given else places.overlay
    # Whole or not at all, also when two sessions start at once.
    draft = places.directory / f"home-{os.getpid()}-{secrets.token_hex(4)}"
    library = draft / "python" / "lib"
    library.mkdir(parents=True)
    try:
        for name in _LINKED:
            if (places.spark / name).exists():
                (draft / name).symlink_to(places.spark / name)
        for archive in (places.spark / "python" / "lib").glob("py4j-*.zip"):
            (library / archive.name).symlink_to(archive)
        try:
            draft.rename(places.overlay)
        except OSError:
            if not places.overlay.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return places.overlay
