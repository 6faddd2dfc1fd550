"""`make demo`, made small: the real data set, the real broker, real Spark, a real pika consumer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

DEMO = Path(__file__).parents[2] / "examples" / "flights_demo.py"


def run(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(DEMO), *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1_100,
        check=False,
    )


def test_every_flight_arrives_and_the_answer_comes_back() -> None:
    done = run("--rows", "2000")
    assert done.returncode == 0, done.stdout + done.stderr
    checks = re.findall(r"│ ([^│]+?) +│ +([^│]+?) │ +([^│]+?) │ +(yes|NO) │", done.stdout)
    found = {name: (expected, got) for name, expected, got, _ in checks}
    assert {verdict for *_, verdict in checks} == {"yes"}
    assert found["flights sent and confirmed"] == ("2,000", "2,000")
    assert found["different ids stored"] == ("2,000", "2,000")
    assert found["sum of distance"] == ("2,131,329", "2,131,329")
    assert found["messages left in the queues"] == ("0", "0")
    assert re.search(r"ExpressJet Airlines Inc\. +│ +EV │", done.stdout)
    assert "pika heard the answer" in done.stdout
    assert "\x1b[" not in done.stdout, "plain lines where there is no terminal"


def test_a_wrong_number_of_rows_is_refused() -> None:
    done = run("--rows", "0")
    assert done.returncode == 2
    assert "must be at least 1" in done.stderr
