"""Last values, numbers and initial values are there again after a restart and after a kill."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties, decode_properties
from tests.model.peer import call, publish
from tests.robustness.test_restart import ENDS, Client, running, taken

KINDS = pytest.mark.parametrize("kind", ["classic", "quorum"])


def send(client: Client, exchange: str, key: str, *texts: str) -> None:
    """Publish texts whose first letter is the key, and wait until all are on disk."""
    client.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
    for text in texts:
        properties = BasicProperties(delivery_mode=2, headers={"symbol": text[0]})
        client.send(publish(1, exchange, key, text.encode(), properties=properties))
    client.send(publish(1, "", "marks", b"", properties=BasicProperties(delivery_mode=2)))
    numbers = 0
    client.sent = getattr(client, "sent", 0) + len(texts) + 1  # type: ignore[attr-defined]
    while numbers < client.sent:  # type: ignore[attr-defined]
        numbers = client.until(m.BasicAck).method.delivery_tag


def declare(client: Client, name: str, **arguments: Any) -> None:
    client.ask(m.QueueDeclare("marks", durable=True), m.QueueDeclareOk)
    client.ask(m.QueueDeclare(name, durable=True, arguments=arguments), m.QueueDeclareOk)


def bodies(client: Client, queue: str) -> list[bytes]:
    return [body for body, _ in taken(client, queue)]


@KINDS
@pytest.mark.parametrize("end", ENDS)
def test_the_newest_message_of_each_key_is_back(
    end: signal.Signals, kind: str, tmp_path: Path
) -> None:
    arguments = {"x-queue-type": kind, "x-last-value-key": "symbol"}
    with running(tmp_path, end=end) as client:
        declare(client, "v", **arguments)
        send(client, "", "v", *[f"{'abc'[n % 3]}{n}" for n in range(300)], "d300")
        # It is out when its successor comes, and when the broker ends.
        client.ask(m.BasicGet("v"), m.BasicGetOk)
        send(client, "", "v", "a301")
    with running(tmp_path, end=end) as client:
        client.ask(m.QueueDeclare("v", passive=True), m.QueueDeclareOk)
        send(client, "", "v", "b302")
    with running(tmp_path) as client:
        assert bodies(client, "v") == [b"c299", b"d300", b"a301", b"b302"]
        client.send(call(1, m.QueueDelete("v", nowait=True)))


@pytest.mark.parametrize("end", ENDS)
def test_the_numbers_of_a_queue_and_of_an_exchange_go_on(
    end: signal.Signals, tmp_path: Path
) -> None:
    with running(tmp_path, end=end) as client:
        declare(client, "q", **{"qpid.queue_msg_sequence": "number"})
        arguments = {"qpid.msg_sequence": 1, "qpid.ive": 1}
        client.ask(
            m.ExchangeDeclare("x", "direct", durable=True, arguments=arguments),
            m.ExchangeDeclareOk,
        )
        client.ask(m.QueueBind("q", "x", "k"), m.QueueBindOk)
        send(client, "x", "k", "1", "2", "3")
        assert len(taken(client, "q")) == 3
    with running(tmp_path) as client:
        send(client, "x", "k", "4")
        got = client.ask(m.BasicGet("q", no_ack=True), m.BasicGetOk)
        while got.body != b"4":
            # A kill may come before the others are settled on disk.
            assert end is signal.SIGKILL
            got = client.ask(m.BasicGet("q", no_ack=True), m.BasicGetOk)
        headers = decode_properties(got.properties).headers
        assert headers is not None
        assert headers["number"] == 4
        if end is signal.SIGTERM:
            assert headers["qpid.msg_sequence"] == 4
        else:
            assert 3 < headers["qpid.msg_sequence"] <= 1_004


@pytest.mark.parametrize("end", ENDS)
def test_initial_values_of_a_durable_exchange_are_back(end: signal.Signals, tmp_path: Path) -> None:
    with running(tmp_path, end=end) as client:
        declare(client, "old")
        client.ask(
            m.ExchangeDeclare("x", "topic", durable=True, arguments={"qpid.ive": True}),
            m.ExchangeDeclareOk,
        )
        for key, text in (("a.1", "1"), ("b.1", "2"), ("a.1", "3")):
            send(client, "x", key, text)
    with running(tmp_path) as client:
        client.ask(m.QueueDeclare("new"), m.QueueDeclareOk)
        client.ask(m.QueueBind("new", "x", "#"), m.QueueBindOk)
        assert bodies(client, "new") == [b"2", b"3"]
        assert "belongs to no queue" not in client.broker.log
        client.ask(m.ExchangeDelete("x"), m.ExchangeDeleteOk)
