"""Compile the class of Spark's catalog: `python tools/catalog.py [FOLDER]`.

Needs the `javac` of Java 17, and pyspark. The jar is the same for the same source: files in order,
no times, no manifest.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

CATALOG = Path(__file__).parents[1] / "src" / "harebell" / "spark"
NAME = "harebell-catalog.jar"


def build(target: Path) -> Path:
    """Compile the source and pack the classes into a directory."""
    spark = find_spec("pyspark")
    assert spark is not None, "pip install 'harebell[spark]'"
    assert spark.origin is not None
    jars = Path(spark.origin).parent / "jars"
    with tempfile.TemporaryDirectory() as classes:
        source = CATALOG / "HarebellCatalog.java"
        options = ["--release", "17", "-proc:none", "-g:none", "-cp", f"{jars}/*", "-d", classes]
        subprocess.run(["javac", *options, str(source)], check=True)
        with zipfile.ZipFile(target / NAME, "w") as jar:
            for path in sorted(Path(classes).rglob("*.class")):
                name = path.relative_to(classes).as_posix()
                info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                jar.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return target / NAME


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else CATALOG))
