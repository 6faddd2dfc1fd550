"""`harebell publish`: bodies, properties, and an exit code that can be trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.client.blocking import Channel
from tests.cli.conftest import Harebell, bodies, error_of


def test_publish_sends_its_argument_and_says_so(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    result = harebell("publish", "-r", queue, "hello, wörld")
    assert result.returncode == 0, result.stderr
    assert result.stdout.decode() == f"1 message published to queue '{queue}' and confirmed\n"
    assert bodies(channel, queue) == ["hello, wörld".encode()]


def test_publish_sends_standard_input_octet_by_octet(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    body = bytes(range(256)) * 1000
    assert harebell("publish", "-r", queue, stdin=body).returncode == 0
    assert bodies(channel, queue) == [body]


def test_publish_sends_a_message_for_each_line(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    result = harebell("publish", "-r", queue, "--lines", stdin=b"one\ntwo\r\n\nlast")
    assert result.returncode == 0
    assert b"4 messages published" in result.stdout
    assert bodies(channel, queue) == [b"one", b"two", b"", b"last"]


def test_publish_sends_files_in_their_order(
    harebell: Harebell, channel: Channel, queue: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"1\n")
    second.write_bytes(b"2")
    result = harebell("publish", "-r", queue, "-f", str(second), "-f", str(first))
    assert result.returncode == 0
    assert bodies(channel, queue) == [b"2", b"1\n"]


def test_count_repeats_everything_in_order(
    harebell: Harebell, channel: Channel, queue: str
) -> None:
    result = harebell("publish", "-r", queue, "--lines", "--count", "3", stdin=b"a\nb\n")
    assert b"6 messages published" in result.stdout
    assert bodies(channel, queue) == [b"a", b"b"] * 3


def test_properties_and_headers_arrive(harebell: Harebell, channel: Channel, queue: str) -> None:
    flags = [
        *("--content-type", "application/json", "--content-encoding", "identity"),
        *("--correlation-id", "c1", "--reply-to", "answers", "--expiration", "60000"),
        *("--message-id", "m1", "--type", "order", "--user-id", "guest", "--app-id", "shop"),
        *("--priority", "7", "--timestamp", "1700000000"),
        *("-H", "kind=invoice", "-H", "retries:=3", "-H", "tags:=[true, null]"),
    ]
    result = harebell("publish", "-r", queue, "{}", *flags)
    assert result.returncode == 0, result.stderr
    message = channel.get(queue, no_ack=True)
    assert message is not None
    assert message.content_type == "application/json"
    assert message.content_encoding == "identity"
    assert message.correlation_id == "c1"
    assert message.reply_to == "answers"
    assert message.expiration == "60000"
    assert message.message_id == "m1"
    assert message.type == "order"
    assert message.user_id == "guest"
    assert message.app_id == "shop"
    assert message.priority == 7
    assert message.delivery_mode == 2
    assert message.headers == {"kind": "invoice", "retries": 3, "tags": [True, None]}
    shown = message.timestamp
    assert (shown if isinstance(shown, int) else shown.timestamp()) == 1_700_000_000


def test_a_transient_message_is_marked_so(harebell: Harebell, channel: Channel, queue: str) -> None:
    assert harebell("publish", "-r", queue, "--transient", "x").returncode == 0
    message = channel.get(queue, no_ack=True)
    assert message is not None
    assert message.delivery_mode == 1


def test_publish_sends_to_an_exchange(harebell: Harebell, channel: Channel, queue: str) -> None:
    channel.bind_queue(queue, "amq.topic", "orders.#")
    result = harebell("publish", "-e", "amq.topic", "-r", "orders.eu", "x")
    assert result.stdout == b"1 message published to exchange 'amq.topic' and confirmed\n"
    assert bodies(channel, queue) == [b"x"]


@pytest.mark.parametrize("flags", [[], ["--mandatory"]], ids=["by default", "asked for"])
def test_a_message_that_reaches_no_queue_fails(harebell: Harebell, flags: list[str]) -> None:
    result = harebell("publish", "-r", "no-such-queue", *flags, "x")
    assert result.returncode == 1
    assert result.stdout == b""
    assert error_of(result) == (
        "message 1 is unroutable and was returned: 312 NO_ROUTE: exchange '', routing key "
        "'no-such-queue'; confirmed: 0. `harebell queues declare no-such-queue` makes that queue, "
        "and --no-mandatory drops what is unroutable"
    )
    result = harebell("publish", "-e", "amq.fanout", *flags, "x")
    assert result.returncode == 1
    assert "bind a queue with `harebell bindings add amq.fanout QUEUE`" in error_of(result)
    result = harebell("publish", "-r", "no such", *flags, "x")
    assert "`harebell queues declare 'no such'` makes that queue" in error_of(result)
    result = harebell("publish", "-r", "no\x1b[31m", *flags, "x")
    assert "`harebell queues declare NAME` makes that queue" in error_of(result)


def test_a_message_that_reaches_no_queue_may_be_dropped(harebell: Harebell) -> None:
    result = harebell("publish", "-r", "no-such-queue", "--no-mandatory", "x")
    assert result.returncode == 0, result.stderr
    assert result.stdout == b"1 message published to queue 'no-such-queue' and confirmed\n"


def test_an_exchange_that_does_not_exist_fails_with_the_broker_s_words(
    harebell: Harebell,
) -> None:
    result = harebell("publish", "-e", "no-such-exchange", "x")
    assert result.returncode == 1
    assert "404 NOT_FOUND - no exchange 'no-such-exchange' in vhost '/'" in error_of(result)


def test_a_broker_that_is_not_there_has_an_exit_code_of_its_own(harebell: Harebell) -> None:
    result = harebell("publish", "--url", "amqp://127.0.0.1:1", "-r", "q", "x")
    assert result.returncode == 4
    assert error_of(result).startswith("cannot connect to 127.0.0.1:1: ")


def test_a_vhost_that_is_not_there_is_a_broker_that_did_not_let_us_in(
    harebell: Harebell, broker: object
) -> None:
    address = broker.address()  # type: ignore[attr-defined]
    result = harebell("publish", "--url", f"{address}/none", "-r", "q", "x")
    assert result.returncode == 4
    assert error_of(result).endswith("refused: 530 NOT_ALLOWED - vhost none not found")


def test_a_wrong_password_is_not_shown(harebell: Harebell, broker: object) -> None:
    address = broker.address().replace("amqp://", "amqp://guest:sesame@")  # type: ignore[attr-defined]
    result = harebell("publish", "--url", address, "-r", "q", "x")
    assert result.returncode == 4
    assert "ACCESS_REFUSED" in error_of(result)
    assert b"sesame" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["x"], "Where to?"),
        (["-r", "q", "-f", "file", "x"], "BODY and --file both give a body"),
        (["-r", "q", "x", "-H", "novalue"], "'novalue' is no header: write name=text"),
        (["-r", "q", "x", "-H", "n:=text"], "'text' is not JSON; write n=text for text"),
        (["-r", "q", "x", "--priority", "256"], "256 is not in the range"),
        (["-r", "q", "x", "--count", "0"], "0 is not in the range"),
        (["-r", "q", "x", "--timestamp", "noon"], "'noon' is no time"),
        (["-r", "q", "x", "--url", "ftp://x"], "an AMQP address begins with amqp://"),
        (["-r", "q", "x", "--url", "amqp://x?hartbeat=1"], "did you mean heartbeat?"),
        (["-r", "q", "x", "--routing_key", "z"], "did you mean --routing-key?"),
    ],
)
def test_a_wrong_command_line_is_a_sentence(
    harebell: Harebell, arguments: list[str], sentence: str
) -> None:
    result = harebell("publish", *arguments)
    assert result.returncode == 2
    assert sentence in error_of(result)


def test_a_file_that_is_not_there_fails(harebell: Harebell) -> None:
    result = harebell("publish", "-r", "q", "-f", "/no/such/file")
    assert result.returncode == 1
    assert error_of(result) == "cannot read /no/such/file: No such file or directory"


def test_a_property_that_does_not_fit_fails(harebell: Harebell) -> None:
    result = harebell("publish", "-r", "q", "x", "--message-id", "m" * 256)
    assert result.returncode == 1
    assert "message_id" in error_of(result)


def test_a_routing_key_that_is_no_utf_8_fails(harebell: Harebell) -> None:
    result = harebell("publish", "-r", "\udcff", "x")
    assert error_of(result) == "a name or a value is not UTF-8: write it in UTF-8"
