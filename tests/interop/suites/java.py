"""The commands for a suite of JUnit's tests, compiled against the packages of Debian."""

from __future__ import annotations

import re
from pathlib import Path

from tests.interop.suites.archives import CannotFetchError

_JARS = (
    "amqp-client", "byte-buddy", "byte-buddy-agent", "hamcrest-all", "junit4", "metrics-core",
    "mockito-core", "objenesis", "slf4j-api", "slf4j-nop",
)  # fmt: skip
_TESTS = Path("src") / "test" / "java"


def classes(source: Path, suite: Path) -> list[Path]:
    """The files of the classes that a suite of JUnit lists, in its order."""
    _, _, listed = suite.read_text().partition("@Suite.SuiteClasses")
    names = re.findall(r"(\w+)\.class", listed)
    found = {path.stem: path for path in (source / _TESTS).rglob("*.java")}
    if not names:
        raise CannotFetchError(f"{suite} lists no class")
    return [found[name] for name in names]


def _path(source: Path) -> str:
    jars = (source / "usr" / "share" / "java" / f"{name}.jar" for name in _JARS)
    return ":".join(str(path) for path in (source / "classes", *jars))


def compiler(source: Path, files: list[Path]) -> list[str]:
    """The command that compiles classes of tests, and the class that runs them."""
    places = ["-d", str(source / "classes"), "-sourcepath", str(source / _TESTS)]
    names = [str(path) for path in (source / "Report.java", *files)]
    return ["javac", "-nowarn", "-cp", _path(source), *places, *names]


def runner(source: Path, file: Path, port: int) -> list[str]:
    """The command that runs one class of tests."""
    name = ".".join(file.relative_to(source / _TESTS).with_suffix("").parts)
    own = {
        "make.bin": source / "make",
        "rabbitmq.dir": source,
        "rabbitmqctl.bin": source / "rabbitmqctl",
        "test-broker.A.nodename": "broker",
        "test-broker.A.node_port": port,
    }
    flags = [f"-D{key}={value}" for key, value in own.items()]
    return ["java", "-Xmx300m", *flags, "-cp", _path(source), "Report", name]
