"""node's amqplib and rhea: each test of `tests/interop/node/tests` is a test here.

The tests are JavaScript, because the clients are. All of them run once, in one node process,
against one broker; what each came to is then told under its own name.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients.brokers import own_broker
from tests.interop.idleness import BEAT_SECONDS, IDLE_SECONDS
from tests.running import RunningBroker
from tests.running import command as harebell_command

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1_200)]

NODE = Path(__file__).parent.parent / "node"
_TEST = re.compile(r'^test\("([^"]+)"', re.MULTILINE)
_RUN_SECONDS = 600
_INSTALL_SECONDS = 600

FILES = sorted((NODE / "tests").glob("*.test.mjs"))
NAMES = [name for file in FILES for name in _TEST.findall(file.read_text())]


def _require(tool: str, package: str) -> str:
    path = shutil.which(tool)
    if path is None:
        pytest.fail(f"node's clients need {tool}: apt-get install -y {package}", pytrace=False)
    return path


def _install() -> None:
    """Install the locked clients, unless the set-up has done so."""
    if (NODE / "node_modules" / "amqplib" / "package.json").exists():
        return
    done = subprocess.run(
        [_require("npm", "npm"), "ci", "--prefix", str(NODE), "--no-audit", "--no-fund"],
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"npm ci --prefix {NODE} failed:\n{done.stderr}", pytrace=False)


@pytest.fixture(scope="module")
def results(shared_broker: RunningBroker) -> dict[str, dict[str, Any]]:
    """What each JavaScript test came to, by name."""
    node = _require("node", "nodejs")
    _install()
    command = [node, "--test", f"--test-reporter={NODE / 'report.mjs'}"]
    command += ["--test-reporter-destination=stdout", "--test-concurrency=1", *map(str, FILES)]
    with own_broker() as own:
        about = {
            "HAREBELL_TEST_URL": f"amqp://guest:guest@127.0.0.1:{shared_broker.port}",
            "HAREBELL_TEST_OWN_URL": f"amqp://guest:guest@127.0.0.1:{own.port}",
            "HAREBELL_TEST_OWN_COMMAND": harebell_command(),
            "HAREBELL_TEST_OWN_DATA_DIR": str(own.data_dir),
            "HAREBELL_TEST_BEAT": str(BEAT_SECONDS),
            "HAREBELL_TEST_IDLE": str(IDLE_SECONDS),
        }
        done = subprocess.run(
            command,
            cwd=NODE,
            env={**os.environ, **about},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_RUN_SECONDS,
            check=False,
        )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert found, f"node reported no test:\n{done.stdout}\n{done.stderr}"
    return {result["name"]: result for result in found}


@pytest.mark.parametrize("sentence", NAMES)
def test_a_node_client_says_that(
    broker: RunningBroker, results: dict[str, dict[str, Any]], sentence: str
) -> None:
    assert sentence in results, f"node did not report it; it reported {sorted(results)}"
    assert results[sentence]["passed"], results[sentence]["why"]


def test_every_javascript_test_is_told_under_its_own_name(
    results: dict[str, dict[str, Any]],
) -> None:
    assert len(NAMES) == len(set(NAMES)) > 20
    assert set(results) == set(NAMES)
