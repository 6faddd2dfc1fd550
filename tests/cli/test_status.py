"""`harebell status`: figures of a running broker, and a sentence where there is none."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from harebell import __version__
from harebell.client.blocking import Channel, connect
from harebell.management.control.client import ask_overview
from tests.cli.conftest import Harebell, error_of, run_harebell
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker, command, environment, running_broker


def alone(broker: RunningBroker) -> None:
    """Wait until the connections of the tests before are gone, but for the fixture's."""
    assert eventually(lambda: ask_overview(broker.data_dir)["connections"] <= 1)


def figures(harebell: Harebell) -> dict[str, object]:
    result = harebell("status", "--json")
    assert result.returncode == 0, result.stderr
    shown: dict[str, object] = json.loads(result.stdout)
    return shown


def test_status_shows_the_broker_its_addresses_and_its_contents(
    harebell: Harebell, broker: RunningBroker, channel: Channel, queue: str
) -> None:
    alone(broker)
    before = figures(harebell)
    channel.publish(b"x" * 1000, routing_key=queue)
    channel.publish(b"y" * 1000, routing_key=queue)
    taken = channel.get(queue)
    after = figures(harebell)
    assert taken is not None
    taken.ack()
    assert after["version"] == __version__
    assert after["pid"] == broker.process.pid
    assert after["listeners"] == [broker.address()]
    assert after["connections"] == before["connections"]
    assert after["messages_ready"] == int(str(before["messages_ready"])) + 1
    assert after["messages_unacknowledged"] == int(str(before["messages_unacknowledged"])) + 1
    grown = int(str(after["memory_messages_bytes"])) - int(str(before["memory_messages_bytes"]))
    assert grown >= 2000
    assert int(str(after["memory_used_bytes"])) > int(str(after["memory_messages_bytes"]))


def test_status_counts_connections_and_channels(harebell: Harebell, broker: RunningBroker) -> None:
    alone(broker)
    before = figures(harebell)
    with connect(broker.address()) as connection:
        connection.channel()
        connection.channel()
        during = figures(harebell)
        assert int(str(during["connections"])) == int(str(before["connections"])) + 1
        assert int(str(during["channels"])) == int(str(before["channels"])) + 2


def test_the_table_says_the_same_for_people(harebell: Harebell, broker: RunningBroker) -> None:
    result = harebell("status")
    assert result.returncode == 0
    lines = {line[:22].rstrip(): line[22:] for line in result.stdout.decode().splitlines()}
    assert lines["version"] == __version__
    assert lines["listening on"] == broker.address()
    assert lines["data directory"] == str(broker.data_dir)
    assert lines["blocked publishers"] == "0"
    assert "% of " in lines["memory"]


def test_status_shows_publishers_that_are_blocked() -> None:
    with (
        running_broker("--memory-high-watermark", "64KiB") as broker,
        connect(broker.address()) as connection,
    ):
        channel = connection.channel(confirms=False)
        name = channel.declare_queue("").name
        for _ in range(20):
            channel.publish(b"x" * 10_000, routing_key=name)
        connection.flush()
        where = ["--data-dir", str(broker.data_dir)]
        assert eventually(lambda: ask_overview(broker.data_dir)["blocked_connections"])
        shown = json.loads(run_harebell("status", "--json", *where).stdout)
        assert shown["memory_alarm"] is True
        assert shown["blocked_connections"] == 1
        assert b"publishers are blocked" in run_harebell("status", *where).stdout
        # A blocked connection is not read from, and could not say that it closes.
        run_harebell("config", "set", "memory_high_watermark", "0.9", *where)


def test_a_broker_that_stands_still_for_a_moment_is_waited_for(own: RunningBroker) -> None:
    own.process.send_signal(signal.SIGSTOP)
    try:
        with subprocess.Popen(
            [command(), "status", "--data-dir", str(own.data_dir)],
            env=environment(),
            stdout=subprocess.DEVNULL,
        ) as asking:
            # A slow disk or a busy machine can do that.
            with pytest.raises(subprocess.TimeoutExpired):
                asking.wait(7)
            own.process.send_signal(signal.SIGCONT)
            assert asking.wait(SECONDS) == 0
    finally:
        own.process.send_signal(signal.SIGCONT)


def test_status_says_when_no_broker_runs_there(tmp_path: Path) -> None:
    result = run_harebell("status", "--data-dir", str(tmp_path / "nowhere"))
    assert result.returncode == 4
    assert error_of(result) == (
        f"no broker runs on the data directory {tmp_path}/nowhere: start one with "
        f"`harebell serve --data-dir {tmp_path}/nowhere`, or name another with --url"
    )


def test_status_says_that_no_broker_runs_where_one_was_killed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "control.sock"))
    result = run_harebell("status", "--data-dir", str(tmp_path))
    assert result.returncode == 4
    assert "no broker runs on" in error_of(result)


def test_the_data_directory_may_come_from_the_configuration_file(
    broker: RunningBroker, tmp_path: Path
) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(f"data_dir = {json.dumps(str(broker.data_dir))}\n")
    result = run_harebell("status", "--config", str(file), "--json")
    assert json.loads(result.stdout)["pid"] == broker.process.pid


@pytest.mark.parametrize(
    ("request_line", "sentence"),
    [
        (b'{"ask": "everything"}\n', "cannot answer 'everything'"),
        (b"what?\n", "not a JSON object"),
        (b"[1]\n", "not a JSON object"),
    ],
)
def test_the_control_socket_refuses_what_it_does_not_know(
    broker: RunningBroker, request_line: bytes, sentence: str
) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(SECONDS)
        link.connect(str(broker.data_dir / "control.sock"))
        link.sendall(request_line)
        answer = json.loads(link.makefile("rb").readline())
    assert answer["ok"] is False
    assert sentence in answer["error"]
