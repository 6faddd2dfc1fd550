"""Which Java is found, and the one sentence where none will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.spark.runtime.java import SessionError, find_java, major_of


def fake(directory: Path, says: str, code: int = 0) -> Path:
    """A program `bin/java` that says something about its version."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nexit {code}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("no version at all", None),
    ],
)
def test_the_major_version_is_read_from_what_java_says(said: str, major: int | None) -> None:
    assert major_of(said) == major


def test_the_java_of_java_home_comes_before_that_of_the_path(tmp_path: Path) -> None:
    program = fake(tmp_path / "home", 'openjdk version "21.0.1"')
    fake(tmp_path / "path", 'openjdk version "17.0.1"')
    home = {"JAVA_HOME": str(tmp_path / "home"), "PATH": f"{tmp_path}/path/bin:/usr/bin:/bin"}
    java = find_java(home)
    assert (java.program, java.major) == (program, 21)
    assert java.version == 'openjdk version "21.0.1"'


def test_the_java_of_the_path_is_found(tmp_path: Path) -> None:
    program = fake(tmp_path, 'openjdk version "17.0.1"')
    assert find_java({"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}).program == program


def test_without_java_the_sentence_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(
        SessionError,
        match=r"^Spark needs Java 17 or newer, and there is no `java` here: apt-get install "
        r"openjdk-17-jre-headless, or set JAVA_HOME to a newer one$",
    ):
        find_java({"PATH": str(tmp_path)})


def test_a_java_home_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match=f"JAVA_HOME is '{tmp_path}', and there is no"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_java_that_is_too_old_is_named_with_its_version(tmp_path: Path) -> None:
    program = fake(tmp_path, 'java version "1.8.0_402"')
    with pytest.raises(SessionError, match=f"{program} is Java 8: apt-get install"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_java_that_does_not_run_is_quoted(tmp_path: Path) -> None:
    fake(tmp_path, "libjvm.so: cannot open shared object file", code=1)
    with pytest.raises(SessionError, match=r"does not run: libjvm\.so: cannot open"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_program_that_is_no_java_is_quoted(tmp_path: Path) -> None:
    fake(tmp_path, "hello")
    with pytest.raises(SessionError, match="does not say which version of Java it is: 'hello'"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    program = fake(tmp_path, "hello")
    program.write_bytes(b"\x7fELF and nothing behind it")
    with pytest.raises(SessionError, match=r"bin/java cannot be run: "):
        find_java({"JAVA_HOME": str(tmp_path)})
