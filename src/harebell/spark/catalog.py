"""Queues as tables of a catalog: `SELECT * FROM harebell.default.orders`.

Spark makes a catalog by the name of a class of the JVM. `HarebellCatalog.java` is that class, and
`harebell-catalog.jar` is made of it by `tools/catalog.py`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CATALOG = "harebell"
"""The name of the catalog in sessions of Harebell."""
CLASS = "io.harebell.spark.HarebellCatalog"
SETTING = f"spark.sql.catalog.{CATALOG}"
_JARS = "spark.jars"


def jar() -> Path:
    """Return the file with the class, for `spark-submit --jars`."""
    return Path(__file__).with_name("harebell-catalog.jar")


def catalog_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for the catalog, merged with those of the program.

    Args:
        given: settings of the program; another class for the same name stays.
    """
    if SETTING in given:
        return {}
    jars = given.get(_JARS, "")
    return {_JARS: f"{jars},{jar()}" if jars else str(jar()), SETTING: CLASS}
