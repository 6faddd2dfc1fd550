"""An outage of a broker is two lines, however many processes and attempts there are."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harebell.spark import outages
from harebell.spark.options.source_options import parse
from harebell.spark.reading.broker_connection import BrokerConnection
from tests.ports import free_port
from tests.running import running_broker

ADDRESS = "broker:5672"


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for the notes, whose path is short enough for the socket of a broker."""
    with tempfile.TemporaryDirectory() as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        monkeypatch.setenv("TMPDIR", directory)
        monkeypatch.setenv("_PYSPARK_DRIVER_CONN_INFO_PATH", "/driver")
        yield Path(directory)
    outages._noticed.clear()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_an_outage_is_one_line_when_it_begins_and_one_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = [outages.Retries(ADDRESS) for _ in range(3)]
    for _ in range(20):
        for task in tasks:
            task.failed(OSError("refused"))
    assert lines(caplog) == [
        "the broker at broker:5672 is away, and is tried until it is back: refused"
    ]
    for _ in tasks:
        outages.ended(ADDRESS)
    (end,) = lines(caplog)[1:]
    assert end.startswith("the broker at broker:5672 is back after ")


def test_a_connection_that_is_made_again_at_once_is_no_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(3):
        task = outages.Retries(ADDRESS)
        task.failed(OSError("reset"))
        outages.ended(ADDRESS)
    assert not lines(caplog)


def test_processes_of_one_driver_say_it_once_and_another_driver_says_it_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    outages.began(ADDRESS, OSError("refused"))
    code = (
        "from harebell.spark import outages\n"
        f"outages.began({ADDRESS!r}, OSError('refused'))\noutages.ended({ADDRESS!r})\n"
    )
    same = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (end,) = same.stderr.splitlines()
    assert end.startswith(f"the broker at {ADDRESS} is back after ")
    outages.ended(ADDRESS)
    assert len(lines(caplog)) == 1
    outages.began(ADDRESS, OSError("refused"))
    monkeypatch.setenv("_PYSPARK_DRIVER_CONN_INFO_PATH", "/other")
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(other.stderr.splitlines()) == 2


def test_the_note_of_processes_that_have_died_hides_no_later_outage(
    notes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outages.began(ADDRESS, OSError("refused"))
    outages._noticed.clear()
    (note,) = notes.iterdir()
    os.utime(note, (1, 1))
    outages.began(ADDRESS, OSError("refused"))
    assert len(lines(caplog)) == 2


def test_a_query_over_a_broker_that_restarts_says_two_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = free_port()
    with running_broker("--port", str(port)) as first:
        options = parse({"url": first.address() + "/%2F", "queue": "q"})
        connection = BrokerConnection(options.url, 300.0, "spark: test")
        connection.call(lambda channel: channel.declare_queue("q"))
    began = outages.began

    with pytest.MonkeyPatch.context() as patched:
        started: list[Any] = []

        def noticed(address: str, error: Exception) -> None:
            began(address, error)
            if not started:
                broker = running_broker("--port", str(port))
                broker.__enter__()
                started.append(broker)

        patched.setattr(outages, "began", noticed)
        connection.call(lambda channel: channel.declare_queue("q"))
        connection.abandon()
    for broker in started:
        broker.__exit__(None, None, None)
    said = lines(caplog)
    assert len(said) == 2, said
    assert "is away" in said[0]
    assert "is back after" in said[1]
