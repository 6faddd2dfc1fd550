"""The examples for Spark do what they say.

They run one after the other in one process, each with a session of its own: so they share a JVM.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import running_broker
from tests.warming import warm_once

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT_SECONDS = 900
PRINTED = {
    # The first, because a session leaves its settings in the environment, and this starts Spark's
    # own command.
    "spark_declarative_project.py": [
        "eu: 500 orders, 249500 in all",
        "us: 500 orders, 250000 in all",
        "orders has 0 messages",
        "example.large has 99 messages",
    ],
    "spark_kafka_code.py": [f"user-{number} clicked 200 times" for number in range(5)],
    "spark_dead_letters.py": [
        "12 rejected in example.payments, without an amount",
        "48 rejected in example.payments, complete",
        "example.payments.failed has 0 messages",
        "example.payments.again has 48 messages",
    ],
    "spark_join.py": ["200 of 300 orders are paid, 300000 in all"],
    "spark_lake_to_exchange.py": [
        "example.warm has 1500 messages",
        "example.cold has 500 messages",
    ],
    "spark_queue_to_delta.py": [
        "de: 300 orders, 135450 in all",
        "fr: 300 orders, 134850 in all",
        "it: 300 orders, 135150 in all",
    ],
}

RUN_EACH = """
import contextlib, io, json, runpy, sys, traceback

url, *examples = sys.argv[1:]
printed = {}
for example in examples:
    sys.argv = [example, url]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_path(example, run_name="__main__")
        except Exception:
            traceback.print_exc(file=out)
    printed[example] = out.getvalue().splitlines()
print(json.dumps(printed))
"""


@pytest.fixture(scope="module")
def printed() -> dict[str, list[str]]:
    """The lines that each example has printed, or why it failed."""
    warm_once()
    examples = [str(EXAMPLES / name) for name in PRINTED]
    with running_broker() as broker:
        result = subprocess.run(
            [sys.executable, "-c", RUN_EACH, f"{broker.address()}/%2F", *examples],
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    assert result.returncode == 0, result.stderr
    lines = json.loads(result.stdout.splitlines()[-1])
    return {Path(example).name: said for example, said in lines.items()}


def test_every_example_for_spark_is_run() -> None:
    assert {each.name for each in EXAMPLES.glob("spark_*.py")} == set(PRINTED)


@pytest.mark.spark
@pytest.mark.timeout(LIMIT_SECONDS + 60)
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_promises(name: str, printed: dict[str, list[str]]) -> None:
    assert printed[name] == PRINTED[name]
