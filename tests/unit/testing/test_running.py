"""A broker in a process of its own, for tests of applications."""

from __future__ import annotations

import signal
import sys

import pika
import pytest

from harebell.testing import DidNotStart, RunningBroker


def test_a_broker_runs_for_the_length_of_a_block() -> None:
    with RunningBroker(heartbeat=7, log_level="warning") as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        assert connection._impl.params.heartbeat == 7
        connection.close()
        process, directory = broker.process, broker.data_dir
        assert directory.exists()
    assert process.returncode == 0
    assert not directory.exists()


def test_a_broker_that_does_not_start_shows_its_log() -> None:
    with pytest.raises(DidNotStart, match=r"did not start \(exit code 2\)[^$]*--no-such-key"):
        RunningBroker(no_such_key=1)


def test_a_killed_broker_leaves_its_data_to_the_next_one() -> None:
    with RunningBroker() as first:
        first.kill()
        assert first.process.returncode == -signal.SIGKILL
        with RunningBroker(data_dir=first.data_dir) as second:
            assert second.data_dir == first.data_dir


def test_the_broker_can_be_run_by_another_command() -> None:
    with RunningBroker(prefix=(sys.executable, "-c", WRAPPER)) as broker:
        assert broker.pid != broker.process.pid
        assert broker.port > 0
        broker.kill()


def test_an_address_that_it_has_not_is_said() -> None:
    with RunningBroker() as broker, pytest.raises(LookupError, match="no amqps address"):
        broker.address("amqps")


WRAPPER = """
import subprocess, sys
sys.exit(subprocess.call(sys.argv[1:]))
"""
