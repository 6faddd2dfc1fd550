"""The examples for Spark do what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import RunningBroker, running_broker
from tests.warming import warm_once

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT_SECONDS = 300
PRINTED = {
    "spark_kafka_code.py": [f"user-{number} clicked 200 times" for number in range(5)],
    "spark_declarative_project.py": [
        "eu: 500 orders, 249500 in all",
        "us: 500 orders, 250000 in all",
        "orders has 0 messages",
        "example.large has 99 messages",
    ],
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


@pytest.fixture(scope="module")
def site() -> object:
    with running_broker() as broker:
        yield broker


def test_every_example_for_spark_is_run() -> None:
    assert {each.name for each in EXAMPLES.glob("spark_*.py")} == set(PRINTED)


@pytest.mark.spark
@pytest.mark.timeout(LIMIT_SECONDS + 60)
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_promises(name: str, site: RunningBroker) -> None:
    warm_once()
    result = subprocess.run(
        [sys.executable, EXAMPLES / name, f"{site.address()}/%2F"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == PRINTED[name]
