"""The command as a user runs it, and a broker to run it against."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from harebell.client.blocking import Channel, connect
from tests.running import RunningBroker, command, environment, running_broker

Result = subprocess.CompletedProcess[bytes]
Harebell = Callable[..., Result]

_PATIENCE_SECONDS = 500.0


def run_harebell(
    *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> Result:
    """Run the command to its end."""
    return subprocess.run(
        [command(), *arguments],
        input=stdin,
        capture_output=True,
        env=environment(env),
        timeout=_PATIENCE_SECONDS,
        check=False,
    )


def run(broker: RunningBroker, *arguments: str, stdin: bytes = b"") -> Result:
    """Run the command against a broker."""
    env = {"HAREBELL_DATA_DIR": str(broker.data_dir)}
    return run_harebell(*arguments, stdin=stdin, env=env)


def done(broker: RunningBroker, *arguments: str, stdin: bytes = b"") -> str:
    """What the command says when it succeeds, as it has to."""
    result = run(broker, *arguments, stdin=stdin)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().strip()


def listed(broker: RunningBroker, noun: str) -> list[dict[str, Any]]:
    """The rows that `list` shows of a noun."""
    rows: list[dict[str, Any]] = json.loads(done(broker, noun, "list", "--json"))
    return rows


@pytest.fixture
def own() -> Iterator[RunningBroker]:
    """A broker for one test."""
    with running_broker() as started:
        yield started


@pytest.fixture(scope="session")
def broker() -> Iterator[RunningBroker]:
    """A broker that all tests of the command line share."""
    with running_broker() as started:
        yield started


@pytest.fixture
def harebell(broker: RunningBroker) -> Harebell:
    """The command, with HAREBELL_URL and HAREBELL_DATA_DIR naming the shared broker."""

    def run(*arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Result:
        about = {"HAREBELL_URL": broker.address(), "HAREBELL_DATA_DIR": str(broker.data_dir)}
        return run_harebell(*arguments, stdin=stdin, env={**about, **(env or {})})

    return run


@pytest.fixture
def channel(broker: RunningBroker) -> Iterator[Channel]:
    """A channel of the client to the shared broker."""
    with connect(broker.address()) as connection:
        yield connection.channel()


@pytest.fixture
def queue(channel: Channel) -> Iterator[str]:
    """A queue with a name of its own, gone after the test."""
    name = channel.declare_queue("", exclusive=False).name
    yield name
    channel.delete_queue(name)


def bodies(channel: Channel, queue: str) -> list[bytes]:
    """The bodies of the messages in a queue, taken out of it."""
    found = []
    while (message := channel.get(queue, no_ack=True)) is not None:
        found.append(message.body)
    return found


def error_of(result: Result) -> str:
    """The one sentence that a failed command ends with; fails if there is a traceback."""
    text = result.stderr.decode()
    assert "Traceback" not in text, text
    found = [line for line in text.splitlines() if line.startswith("Error: ")]
    assert len(found) == 1, text
    return found[0].removeprefix("Error: ")
