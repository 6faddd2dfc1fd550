"""The command itself: version, help, wrong verbs, and what it does not load."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from harebell import __version__
from harebell.cli.commit import commit
from harebell.cli.main import VERBS
from tests.cli.conftest import error_of, run_harebell
from tests.ports import free_port
from tests.running import environment

HEAVY = ("asyncio", "ssl", "rich", "msgspec", "uvloop", "harebell.server", "harebell.client")


def test_the_version_says_what_it_runs_on() -> None:
    result = run_harebell("--version", env={"HAREBELL_IMPL": "python"})
    assert result.returncode == 0
    built_from = f", commit {commit()}" if commit() else ""
    assert result.stdout.decode() == (
        f"harebell {__version__} (python implementation, Python {platform.python_version()}, "
        f"event loop uvloop{built_from})\n"
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
    modules = set(done.stdout.split())
    # A package of which only the limits are loaded is not loaded: they are a file of numbers.
    numbers = {name.removesuffix(".limits") for name in modules if name.endswith(".limits")}
    return modules - {
        package
        for package in numbers
        if not any(
            name.startswith(f"{package}.") and not name.endswith(".limits") for name in modules
        )
    }


def test_the_command_loads_nothing_heavy_before_it_knows_the_verb() -> None:
    assert not loaded("import harebell.cli.main").intersection(HEAVY)


def test_status_needs_no_event_loop_and_no_client() -> None:
    modules = loaded("import harebell.cli.verbs.status")
    assert not modules.intersection({"asyncio", "ssl", "rich", "uvloop", "harebell.client"})


def test_serve_needs_no_client_and_no_terminal_library() -> None:
    modules = loaded("import harebell.cli.verbs.serve, harebell.server.app")
    assert not modules.intersection({"rich", "harebell.client", "pyarrow", "pyspark", "difflib"})


def test_a_verb_that_asks_a_broker_loads_nothing_of_one() -> None:
    modules = loaded(
        "from harebell.admin.catalog import NOUNS\n"
        "from harebell.cli.nouns import group_of\n"
        "for noun in NOUNS.values():\n"
        "    group_of(noun)"
    )
    files = {name for name in modules if not name.endswith(".limits")}
    rooms = {".".join(name.split(".")[:2]) for name in files if name.startswith("harebell.")}
    assert not rooms & {"harebell.auth", "harebell.model", "harebell.store", "harebell.wire"}
    assert not modules.intersection({"asyncio", "ssl", "uvloop", "hashlib"})


RUN_AND_STOP = """
import os, signal, sys
import harebell.cli.verbs.serve as verb

def announce(app, config):
    os.kill(os.getpid(), signal.SIGTERM)

verb.announce = announce
sys.argv = ["harebell", "--port", "{port}", "--data-dir", "{directory}"]
try:
    verb.serve()
except SystemExit as end:
    assert end.code == 0, end.code
"""
OTHERS = (
    *("amqp_0_8", "amqp_0_10", "amqp_0_10_transitional", "file_stream", "amqp_0_9_1.legacy"),
    *("amqp_0_9_1.bulk", "amqp_0_9_1.lease", "amqp_0_9_1.stage"),
)
"""What serves other versions than 0-9-1, their classes, and clients of Harebell's own."""


def test_a_broker_that_is_up_has_loaded_only_what_everybody_needs(tmp_path: Path) -> None:
    modules = loaded(RUN_AND_STOP.format(port=free_port(), directory=tmp_path / "data"))
    assert "harebell.front.arrival" in modules
    unwanted = (
        *(f"harebell.front.{name}" for name in OTHERS),
        *("harebell.wire.v010", "harebell.wire.arrow", "harebell.wire.v09.typed_fields"),
        *("harebell.admin.commands.", "harebell.admin.definitions", "harebell.kernels.segments"),
    )
    needed = {"harebell.management.control.dispatcher", "harebell.admin.context"}
    assert not [name for name in modules - needed if name.startswith(unwanted)]
