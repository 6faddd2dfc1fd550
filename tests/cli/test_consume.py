"""`harebell consume` and `harebell get`: what they print, what they acknowledge, when they end."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from harebell.client.blocking import Channel
from harebell.management.control.client import ask_overview
from tests.cli.conftest import Harebell, error_of
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker, command, environment


def fill(channel: Channel, queue: str, *bodies: bytes) -> None:
    for body in bodies:
        channel.publish(body, routing_key=queue)


def left(channel: Channel, queue: str) -> int:
    """Messages ready in a queue, once the connection of a command that just ended is gone."""
    assert eventually(lambda: channel.declare_queue(queue, passive=True).consumer_count == 0)
    return channel.declare_queue(queue, passive=True).message_count


def until_settled(broker: RunningBroker) -> None:
    """Wait until no message waits for its acknowledgement."""
    assert eventually(lambda: ask_overview(broker.data_dir)["messages_unacknowledged"] == 0)


def test_consume_prints_and_acknowledges_as_many_as_asked_for(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    fill(channel, queue, b"a", b"b", b"c")
    result = harebell("consume", "-q", queue, "--count", "2")
    assert result.returncode == 0, result.stderr
    assert result.stdout == b"a\nb\n"
    assert left(channel, queue) == 1


def test_consume_without_acks_takes_what_was_sent(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    fill(channel, queue, b"a", b"b")
    # Longer than a broker stands still.
    result = harebell("consume", "-q", queue, "--no-ack", "--timeout", "8")
    assert result.returncode == 0, result.stderr
    assert result.stdout == b"a\nb\n"
    assert left(channel, queue) == 0


def test_consume_ends_in_silence_after_the_timeout(harebell: Harebell, queue: str) -> None:
    result = harebell("consume", "-q", queue, "--timeout", "0.2")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def test_consume_fails_when_there_were_not_enough(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    fill(channel, queue, b"a")
    result = harebell("consume", "-q", queue, "--count", "2", "--timeout", "8")
    assert result.returncode == 1
    assert result.stdout == b"a\n"
    assert error_of(result) == "1 of 2 messages came before 8 s passed without one"


def test_raw_output_is_nothing_but_the_bodies(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    fill(channel, queue, b"\x00\xff", b"\n\n")
    result = harebell("consume", "-q", queue, "--count", "2", "--output", "raw")
    assert result.stdout == b"\x00\xff\n\n"


def test_json_output_has_everything_about_a_message(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    channel.publish(
        "grün".encode(),
        routing_key=queue,
        content_type="text/plain",
        priority=3,
        headers={"n": 1, "deep": {"list": [1.5, "x", None, True]}},
    )
    channel.publish(b"\xff", routing_key=queue)
    result = harebell("consume", "-q", queue, "--count", "2", "-o", "json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first == {
        "exchange": "",
        "routing_key": queue,
        "redelivered": False,
        "properties": {"content_type": "text/plain", "priority": 3},
        "headers": {"n": 1, "deep": {"list": [1.5, "x", None, True]}},
        "body": "grün",
    }
    assert second["body_base64"] == "/w=="
    assert "body" not in second


def test_consume_prints_messages_while_it_runs_and_ends_at_ctrl_c(
    broker: RunningBroker, channel: Channel, queue: str
) -> None:
    process = subprocess.Popen(
        [command(), "consume", "-q", queue],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({"HAREBELL_URL": broker.address()}),
        # A shell has what it runs in the background ignore SIGINT, and so its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout is not None
        for number in range(3):
            body = f"message {number}".encode()
            fill(channel, queue, body)
            assert process.stdout.readline() == body + b"\n"
        # A message is acknowledged after it was printed: let the last one get there.
        until_settled(broker)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    assert errors == b""
    assert process.returncode == 130
    assert left(channel, queue) == 0


def test_a_closed_pipe_ends_consume_without_a_traceback(
    broker: RunningBroker, channel: Channel, queue: str
) -> None:
    fill(channel, queue, *[b"x" * 1000] * 500)
    process = subprocess.Popen(
        [command(), "consume", "-q", queue],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({"HAREBELL_URL": broker.address()}),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait(SECONDS)
    assert b"Traceback" not in errors


def test_a_queue_that_does_not_exist_fails_with_the_broker_s_words(harebell: Harebell) -> None:
    for verb in ("consume", "get"):
        result = harebell(verb, "-q", "no-such-queue")
        assert result.returncode == 1
        assert error_of(result) == "404 NOT_FOUND - no queue 'no-such-queue' in vhost '/'"


def test_a_queue_has_to_be_named(harebell: Harebell) -> None:
    for verb in ("consume", "get"):
        result = harebell(verb)
        assert result.returncode == 2
        assert "--queue" in error_of(result)


def test_get_takes_one_message(harebell: Harebell, channel: Channel, queue: str) -> None:
    fill(channel, queue, b"a", b"b")
    assert harebell("get", "-q", queue).stdout == b"a\n"
    assert left(channel, queue) == 1


def test_get_takes_up_to_as_many_as_asked_for(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    fill(channel, queue, b"a", b"b")
    result = harebell("get", "-q", queue, "--count", "5")
    assert result.returncode == 0
    assert result.stdout == b"a\nb\n"
    assert left(channel, queue) == 0


def test_get_can_put_the_messages_back_in_their_order(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    fill(channel, queue, b"a", b"b", b"c")
    result = harebell("get", "-q", queue, "--count", "2", "--requeue", "-o", "json")
    assert [json.loads(line)["body"] for line in result.stdout.splitlines()] == ["a", "b"]
    again = harebell("get", "-q", queue, "--count", "3", "-o", "json")
    shown = [json.loads(line) for line in again.stdout.splitlines()]
    assert [(each["body"], each["redelivered"]) for each in shown] == [
        ("a", True),
        ("b", True),
        ("c", False),
    ]


def test_get_from_an_empty_queue_fails(harebell: Harebell, queue: str) -> None:
    result = harebell("get", "-q", queue)
    assert result.returncode == 1
    assert error_of(result) == f"queue '{queue}' is empty"


@pytest.mark.parametrize("flags", [["--count", "many"], ["--output", "xml"], ["--quue", "q"]])
def test_a_wrong_flag_is_a_sentence(harebell: Harebell, queue: str, flags: list[str]) -> None:
    result = harebell("get", "-q", queue, *flags)
    assert result.returncode == 2
    error_of(result)
