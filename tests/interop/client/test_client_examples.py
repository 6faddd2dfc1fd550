"""The examples of the client run as they are, against both brokers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.interop.client.brokers import Broker

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(example: str, broker: Broker) -> list[str]:
    """The lines that an example prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example), broker.url],
        capture_output=True,
        text=True,
        timeout=570,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_worker_example_does_every_job_and_sets_aside_what_fails_twice(broker: Broker) -> None:
    assert run("client_worker.py", broker) == ["20 jobs confirmed", "17 jobs done, 3 failed twice"]


def test_the_request_reply_example_gets_its_answers_in_order(broker: Broker) -> None:
    assert run("client_request_reply.py", broker) == ["WHO", "WHERE", "WHEN"]
