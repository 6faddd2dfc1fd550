"""The class history: the eras of positions and of claim numbers, as peers ask for them."""

from __future__ import annotations

import pytest

from harebell.base.eras import is_eras
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.test_lease import Place, refused


def test_positions_and_each_group_have_eras_of_their_own() -> None:
    place = Place(5)
    place.claim(2)
    place.ask(m.LeaseOpen("q", "other"))
    texts = set()
    for group in ("", "g", "other"):
        answer = place.ask(m.HistoryAsk("q", group))
        assert answer.generation == place.queue.identity
        text = answer.eras.decode("ascii")
        assert text
        assert is_eras(text)
        assert place.ask(m.HistoryAsk("q", group)) == answer
        texts.add(text)
    assert len(texts) == 3


@pytest.mark.parametrize(("queue", "group"), [("nothing", ""), ("nothing", "g"), ("q", "nothing")])
def test_a_missing_store_has_no_eras(queue: str, group: str) -> None:
    place = Place(1)
    text = refused(place.ask(m.HistoryAsk(queue, group)), 404)
    assert "'nothing'" in text


def test_a_queue_without_a_log_has_no_eras() -> None:
    place = Place(0)
    answer = place.ask(m.HistoryAsk("amq.rabbitmq.reply-to"))
    assert isinstance(answer, m.ChannelClose)
