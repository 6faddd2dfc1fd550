"""The command itself: version, help, wrong verbs, and what it does not load."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from harebell import __version__
from harebell.cli.main import VERBS
from tests.cli.conftest import error_of, run_harebell
from tests.running import environment

HEAVY = ("asyncio", "ssl", "rich", "msgspec", "uvloop", "harebell.server", "harebell.client")


def test_the_version_says_what_it_runs_on() -> None:
    result = run_harebell("--version", env={"HAREBELL_IMPL": "python"})
    assert result.returncode == 0
    assert result.stdout.decode() == (
        f"harebell {__version__} (python implementation, Python {platform.python_version()}, "
        "event loop uvloop)\n"
    )


def test_the_version_names_the_compiled_implementation() -> None:
    result = run_harebell("--version", env={"HAREBELL_IMPL": "native"})
    assert b"(native implementation," in result.stdout


def test_help_lists_every_verb() -> None:
    result = run_harebell("--help")
    assert result.returncode == 0
    for verb in VERBS:
        assert f"  {verb}" in result.stdout.decode()


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_has_help(verb: str) -> None:
    result = run_harebell(verb, "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"Usage: harebell {verb} ".encode())


def test_a_wrong_verb_is_answered_with_the_nearest_one() -> None:
    result = run_harebell("sevre")
    assert result.returncode == 2
    assert error_of(result) == "No verb 'sevre': did you mean serve?"


def test_a_verb_like_none_is_answered_with_all_of_them() -> None:
    result = run_harebell("xyzzy")
    assert result.returncode == 2
    assert error_of(result).endswith(f"known are {', '.join(VERBS)}")


def test_a_wrong_flag_before_the_verb_is_answered() -> None:
    result = run_harebell("--verson")
    assert result.returncode == 2
    assert "--version" in error_of(result)


def loaded(code: str) -> set[str]:
    """The modules that are loaded after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    return set(done.stdout.split())


def test_the_command_loads_nothing_heavy_before_it_knows_the_verb() -> None:
    assert not loaded("import harebell.cli.main").intersection(HEAVY)


def test_status_needs_no_event_loop_and_no_client() -> None:
    modules = loaded("import harebell.cli.status")
    assert not modules.intersection({"asyncio", "ssl", "rich", "uvloop", "harebell.client"})


def test_serve_needs_no_client_and_no_terminal_library() -> None:
    modules = loaded("import harebell.cli.serve, harebell.server.app")
    assert not modules.intersection({"rich", "harebell.client", "pyarrow", "pyspark", "difflib"})
