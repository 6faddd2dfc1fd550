"""What exchanges keep is there again after a restart and after a kill, and goes with them."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.model.peer import call, publish
from tests.robustness.test_restart import ENDS, Client, running, taken

KEPT = BasicProperties(delivery_mode=2)


def _confirmed(client: Client, exchange: str, bodies: list[bytes], **headers: Any) -> None:
    """Publish, and wait until a persistent message that came after it all is on disk."""
    properties = BasicProperties(headers=headers) if headers else BasicProperties()
    client.send(b"".join(publish(1, exchange, "k", body, properties=properties)
                         for body in bodies))  # fmt: skip
    client.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
    client.send(publish(1, "", "marks", b"", properties=KEPT))
    client.until(m.BasicAck)


@pytest.mark.parametrize("end", ENDS)
def test_a_durable_exchange_knows_its_history_again(end: signal.Signals, tmp_path: Path) -> None:
    with running(tmp_path, end=end) as client:
        client.ask(m.QueueDeclare("marks", durable=True), m.QueueDeclareOk)
        client.ask(m.QueueDeclare("old", durable=True), m.QueueDeclareOk)
        for name, durable in (("lasting", True), ("passing", False)):
            arguments = {"x-recent-history-length": 3}
            client.ask(
                m.ExchangeDeclare(name, "x-recent-history", durable=durable, arguments=arguments),
                m.ExchangeDeclareOk,
            )
        client.ask(m.QueueBind("old", "lasting", ""), m.QueueBindOk)
        _confirmed(client, "lasting", [b"1", b"2", b"3", b"4"])
    with running(tmp_path) as client:
        # A binding that comes back is no new one, and its queue held transient messages only.
        assert taken(client, "old") == []
        client.ask(m.QueueDeclare("new"), m.QueueDeclareOk)
        client.ask(m.QueueBind("new", "lasting", ""), m.QueueBindOk)
        assert taken(client, "new") == [(b"2", False), (b"3", False), (b"4", False)]
        client.ask(m.ExchangeDeclare("lasting", passive=True), m.ExchangeDeclareOk)
        assert client.broker.log.count("belongs to no queue") == 0
        client.ask(m.ExchangeDelete("lasting"), m.ExchangeDeleteOk)
    with running(tmp_path) as client:
        assert "belongs to no queue" not in client.broker.log
    # What is left are the logs of the two queues.
    assert len(list((tmp_path / "queues").iterdir())) == 2


@pytest.mark.parametrize("end", ENDS)
def test_duplicates_are_known_again_if_they_are_kept_on_disk(
    end: signal.Signals, tmp_path: Path
) -> None:
    with running(tmp_path, end=end) as client:
        client.ask(m.QueueDeclare("marks", durable=True), m.QueueDeclareOk)
        client.ask(m.QueueDeclare("q", durable=True), m.QueueDeclareOk)
        for persistence in ("disk", "memory"):
            arguments = {"x-cache-size": 10, "x-cache-persistence": persistence}
            client.ask(
                m.ExchangeDeclare(
                    persistence, "x-message-deduplication", durable=True, arguments=arguments
                ),
                m.ExchangeDeclareOk,
            )
            client.ask(m.QueueBind("q", persistence, ""), m.QueueBindOk)
            _confirmed(client, persistence, [b"before"], **{"x-deduplication-header": "id"})
        assert len(taken(client, "q")) == 2
    with running(tmp_path) as client:
        for persistence in ("disk", "memory"):
            client.send(
                publish(
                    1,
                    persistence,
                    "",
                    persistence.encode(),
                    properties=BasicProperties(headers={"x-deduplication-header": "id"}),
                )
            )
        assert [body for body, _ in taken(client, "q")] == [b"memory"]
        client.send(call(1, m.QueueDelete("q", nowait=True)))


@pytest.mark.parametrize("end", ENDS)
def test_a_queue_that_holds_each_message_once_does_so_after_a_restart(
    end: signal.Signals, tmp_path: Path
) -> None:
    arguments = {"x-message-deduplication": True}
    kept = BasicProperties(delivery_mode=2, headers={"x-deduplication-header": "id"})
    twice = publish(1, "", "q", b"one of two", properties=kept) * 2
    with running(tmp_path, end=end) as client:
        client.ask(m.QueueDeclare("q", durable=True, arguments=arguments), m.QueueDeclareOk)
        client.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
        client.send(publish(1, "", "q", b"the first", properties=kept))
        client.until(m.BasicAck)
    with running(tmp_path) as client:
        client.send(twice)
        assert [body for body, _ in taken(client, "q")] == [b"the first"]
        client.send(twice)
        assert [body for body, _ in taken(client, "q")] == [b"one of two"]
