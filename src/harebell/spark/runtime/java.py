"""Find the Java that Spark would run, and its version, before Spark starts.

Spark's launcher is a shell script. Without Java, or with one that is too old, it prints a stack
trace or nothing, and Python reports that a gateway has exited.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harebell.base.errors import HarebellError
from harebell.spark.limits import JAVA_ANSWER_SECONDS

OLDEST = 17
MEND = f"apt-get install openjdk-{OLDEST}-jre-headless, or set JAVA_HOME to a newer one"
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?[^"]*"')


class SessionError(HarebellError):
    """Spark cannot be started here; the text says what to install or to change."""


@dataclass(frozen=True)
class Java:
    """A Java runtime.

    Args:
        program: its path.
        major: 17 for 17.0.15.
        version: its version text, on one line.
    """

    program: Path
    major: int
    version: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the Java that Spark's launcher uses: from JAVA_HOME, else from PATH.

    Raises:
        SessionError: there is none, it does not run, or it is too old.
    """
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if not program.is_file():
            raise SessionError(f"JAVA_HOME is {home!r}, and there is no {program}: {MEND}")
    else:
        path = shutil.which("java", path=environment.get("PATH"))
        if path is None:
            raise SessionError(
                f"Spark needs Java {OLDEST} or newer, and there is no `java` here: {MEND}"
            )
        program = Path(path)
    said = _ask(program)
    major = major_of(said)
    if major is None:
        raise SessionError(f"{program} does not say which version of Java it is: {said!r}")
    if major < OLDEST:
        raise SessionError(
            f"Spark needs Java {OLDEST} or newer, and {program} is Java {major}: {MEND}"
        )
    return Java(program, major, said)


def _ask(program: Path) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java
            [str(program), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=JAVA_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SessionError(
            f"{program} did not say its version in {JAVA_ANSWER_SECONDS:g} s"
        ) from None
    except OSError as error:
        raise SessionError(f"{program} cannot be run: {error.strerror}") from None
    said = (done.stderr or done.stdout).strip()
    if done.returncode != 0:
        reason = said.splitlines()[-1] if said else f"it ends with code {done.returncode}"
        raise SessionError(f"{program} does not run: {reason}")
    return " ".join(said.split())


def major_of(said: str) -> int | None:
    """Return 17 for `openjdk version "17.0.15"`, 8 for `java version "1.8.0_402"`."""
    match = _VERSION.search(said)
    if match is None:
        return None
    first, second = int(match[1]), match[2]
    return int(second) if first == 1 and second is not None else first
