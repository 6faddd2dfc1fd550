"""What a selective consumer had is there again for the next one, after a restart and a kill."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.model.peer import call, publish
from tests.robustness.test_restart import ENDS, Client, running, taken

SELECTOR = {"x-filter-jms-selector": "n % 10 = 7 AND even = FALSE"}


def send(client: Client, numbers: range, first_tag: int) -> None:
    """Publish numbers, and wait until all are on disk."""
    for number in numbers:
        headers = {"n": number, "even": number % 2 == 0}
        properties = BasicProperties(delivery_mode=2, headers=headers)
        client.send(publish(1, "", "q", b"%d" % number, properties=properties))
    last = first_tag + len(numbers) - 1
    while client.until(m.BasicAck).method.delivery_tag < last:
        pass


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_was_selected_and_not_settled_is_selected_again(
    kind: str, end: signal.Signals, tmp_path: Path
) -> None:
    with running(tmp_path, end=end) as client:
        arguments = {"x-queue-type": kind}
        client.ask(m.QueueDeclare("q", durable=True, arguments=arguments), m.QueueDeclareOk)
        client.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
        send(client, range(100), 1)
        client.ask(m.BasicQos(prefetch_count=3), m.BasicQosOk)
        client.ask(m.BasicConsume("q", "t", arguments=SELECTOR), m.BasicConsumeOk)
        found = [client.until(m.BasicDeliver) for _ in range(3)]
        assert [each.body for each in found] == [b"7", b"17", b"27"]
        client.send(call(1, m.BasicAck(found[0].method.delivery_tag)))
        assert client.until(m.BasicDeliver).body == b"37"
        # Its confirm says that the acknowledgement before it is on disk, too.
        send(client, range(100, 101), 101)
    with running(tmp_path) as client:
        client.ask(m.BasicConsume("q", "t", arguments=SELECTOR), m.BasicConsumeOk)
        again = [client.until(m.BasicDeliver) for _ in range(9)]
        assert [each.body for each in again] == [b"%d" % n for n in range(17, 100, 10)]
        assert all(each.method.redelivered for each in again[:3])
        client.send(call(1, m.BasicAck(again[-1].method.delivery_tag, multiple=True)))
        client.ask(m.BasicCancel("t"), m.BasicCancelOk)
        rest = [int(body) for body, _ in taken(client, "q")]
        assert rest == [number for number in range(101) if number % 10 != 7]
