"""Time goes on while the broker does not run: what expires, and who is unused, after a restart."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from harebell.management.control.client import ask_command
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.model.peer import Event, call, publish
from tests.patience import SECONDS as PATIENCE_SECONDS
from tests.patience import eventually
from tests.robustness.test_restart import ENDS, Client, fill, running, taken

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def count(client: Client, queue: str) -> int:
    ok = client.ask(m.QueueDeclare(queue, passive=True), m.QueueDeclareOk).method
    assert isinstance(ok, m.QueueDeclareOk)
    return ok.message_count


def is_qos_ok(event: Event) -> bool:
    return isinstance(event.method, m.BasicQosOk)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_messages_expire_that_were_there_before_the_restart(
    kind: str, end: signal.Signals, tmp_path: Path
) -> None:
    own = BasicProperties(delivery_mode=2, expiration="1000")
    kept = BasicProperties(delivery_mode=2)
    with running(tmp_path, end=end) as client:
        client.ask(m.QueueDeclare("dead", durable=True), m.QueueDeclareOk)
        of_kind = {**DEAD, "x-queue-type": kind}
        limited = {**of_kind, "x-message-ttl": 1_000}
        client.ask(m.QueueDeclare("limited", durable=True, arguments=limited), m.QueueDeclareOk)
        client.ask(m.QueueDeclare("open", durable=True, arguments=of_kind), m.QueueDeclareOk)
        fill(client, "limited", [b"by its queue"], kept)
        client.ask(m.ChannelClose(reply_code=200), m.ChannelCloseOk)
        client.ask(m.ChannelOpen(), m.ChannelOpenOk)
        fill(client, "open", [b"by its own time"], own)
    time.sleep(1.1)  # what has to expire does so however much longer this takes
    with running(tmp_path, end=end) as client:
        # One that had expired before may be among the dead twice: see that both queues are empty.
        assert eventually(lambda: (count(client, "limited"), count(client, "open")) == (0, 0))
        bodies = {body for body, _ in taken(client, "dead")}
        assert bodies == {b"by its queue", b"by its own time"}


@pytest.mark.parametrize("end", ENDS)
def test_messages_with_time_left_are_there_after_the_restart(
    end: signal.Signals, tmp_path: Path
) -> None:
    with running(tmp_path, end=end) as client:
        arguments = {**DEAD, "x-message-ttl": 600_000, "x-expires": 600_000}
        client.ask(m.QueueDeclare("q", durable=True, arguments=arguments), m.QueueDeclareOk)
        fill(client, "q", [b"m"], BasicProperties(delivery_mode=2, expiration="900000"))
    with running(tmp_path) as client:
        assert [body for body, _ in taken(client, "q")] == [b"m"]


@pytest.mark.parametrize("end", ENDS)
def test_a_queue_is_unused_since_the_start_at_most(end: signal.Signals, tmp_path: Path) -> None:
    with running(tmp_path, end=end) as client:
        arguments = {"x-expires": 1_500}
        client.ask(m.QueueDeclare("q", durable=True, arguments=arguments), m.QueueDeclareOk)
    time.sleep(1.6)  # nobody could use it meanwhile
    with running(tmp_path) as client:
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            # A queue that is gone sends mandatory messages back; publishing is no use of it.
            client.send(publish(1, "", "q", b"m", mandatory=True) + call(1, m.BasicQos()))
            answers = client.collect(lambda events: any(map(is_qos_ok, events)))
            if any(isinstance(each.method, m.BasicReturn) for each in answers):
                break
            time.sleep(0.1)
        client.ask(m.QueueDeclare("q", passive=True), m.ChannelClose)
    with running(tmp_path) as client:
        client.ask(m.QueueDeclare("q", passive=True), m.ChannelClose)


@pytest.mark.parametrize("end", ENDS)
def test_delayed_messages_are_confirmed_on_disk_and_come_after_a_restart(
    end: signal.Signals, tmp_path: Path
) -> None:
    def later(ms: int, mode: int = 2) -> BasicProperties:
        return BasicProperties(headers={"x-delay": ms}, delivery_mode=mode)

    with running(tmp_path, end=end) as client:
        client.ask(
            m.ExchangeDeclare(
                "later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"}
            ),
            m.ExchangeDeclareOk,
        )
        client.ask(m.QueueDeclare("q", durable=True), m.QueueDeclareOk)
        client.ask(m.QueueBind("q", "later"), m.QueueBindOk)
        client.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
        client.send(
            publish(1, "later", "k", b"hour", properties=later(3_600_000))
            + publish(1, "later", "k", b"transient", properties=later(3_600_000, mode=1))
            + publish(1, "later", "k", b"soon", properties=later(2_000))
        )
        seen = 0
        while seen < 3:
            ack = client.until(m.BasicAck).method
            assert isinstance(ack, m.BasicAck)
            seen = ack.delivery_tag
    with running(tmp_path) as client:
        assert eventually(lambda: count(client, "q") > 0, PATIENCE_SECONDS)
        # Twice only if the broker was killed just when the message went on.
        assert {body for body, _ in taken(client, "q")} == {b"soon"}
    with running(tmp_path) as client:
        assert count(client, "q") == 0
        listed = ask_command(tmp_path, "exchanges.list", {"vhost": "/"})
        waiting = {each["name"]: each["messages_delayed"] for each in listed}
        assert waiting["later"] == 2
        client.ask(m.ExchangeDelete("later"), m.ExchangeDeleteOk)
    with running(tmp_path) as client:
        assert "belongs to no queue" not in client.broker.log
    # What is left is the log of the queue.
    assert len(list((tmp_path / "queues").iterdir())) == 1


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_message_that_failed_before_the_restart_waits_once_more_and_is_not_lost(
    kind: str, end: signal.Signals, tmp_path: Path
) -> None:
    arguments = {"x-queue-type": kind, "x-retry-delays": [1_000, 3_600_000], **DEAD}
    with running(tmp_path, end=end) as client:
        client.ask(m.QueueDeclare("dead", durable=True), m.QueueDeclareOk)
        client.ask(m.QueueDeclare("q", durable=True, arguments=arguments), m.QueueDeclareOk)
        fill(client, "q", [b"failed", b"new"], BasicProperties(delivery_mode=2))
        client.ask(m.ChannelClose(reply_code=200), m.ChannelCloseOk)
        client.ask(m.ChannelOpen(), m.ChannelOpenOk)
        found = client.ask(m.BasicGet(queue="q"), m.BasicGetOk)
        assert isinstance(found.method, m.BasicGetOk)
        assert found.body == b"failed"
        client.send(call(1, m.BasicReject(found.method.delivery_tag, requeue=False)))
        # A confirm that comes after it says that the count is on disk, too.
        fill(client, "dead", [b"mark"], BasicProperties(delivery_mode=2))
    with running(tmp_path, end=end) as client:
        assert eventually(lambda: count(client, "q") == 2, PATIENCE_SECONDS)
        client.send(call(1, m.BasicGet(queue="q")))
        first = client.until(m.BasicGetOk)
        client.send(call(1, m.BasicGet(queue="q")))
        second = client.until(m.BasicGetOk)
        assert {first.body, second.body} == {b"failed", b"new"}
        last = first if first.body == b"failed" else second
        assert isinstance(last.method, m.BasicGetOk)
        assert last.method.redelivered
        client.send(call(1, m.BasicReject(last.method.delivery_tag, requeue=False)))
        assert count(client, "q") == 0
        assert count(client, "dead") == 1
