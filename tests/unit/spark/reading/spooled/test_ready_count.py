"""What a queue is believed to have when nobody could be asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import Struct

from harebell.spark.reading.spooled.ready_count import ready_count


class Answer(Struct):
    """What a broker says, and how long it takes."""

    message_count: int
    consumer_count: int
    seconds: float


class Broker:
    """Says one thing after the other, and the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.now = 0.0
        self.requested = 0
        self._answers: Iterator[Answer] = iter(answers)
        self._last = answers[-1]

    def ask(self) -> Answer:
        self.requested += 1
        self._last = next(self._answers, self._last)
        self.now += self._last.seconds
        return self._last

    def ready_count(self, *, consuming: bool) -> int:
        return ready_count(
            self.ask, consuming=consuming, patience=10.0, clock=lambda: self.now, pause=self._pass
        )

    def _pass(self, seconds: float) -> None:
        self.now += seconds


BUSY = Answer(0, 0, 0.25)
EMPTY = Answer(0, 0, 0.001)


@pytest.mark.parametrize("consuming", [False, True])
def test_a_busy_queue_is_asked_until_it_answers(consuming: bool) -> None:
    broker = Broker(BUSY, BUSY, Answer(100, 2, 0.01))
    assert broker.ready_count(consuming=consuming) == 100
    assert broker.requested == 3


def test_an_empty_queue_of_which_nobody_consumes_is_believed_at_once() -> None:
    broker = Broker(EMPTY, Answer(1, 0, 0.001))
    assert broker.ready_count(consuming=False) == 0
    assert broker.requested == 1


def test_an_answer_that_misses_our_own_consumers_is_not_believed() -> None:
    broker = Broker(EMPTY, Answer(100, 2, 0.001))
    assert broker.ready_count(consuming=True) == 100


def test_an_empty_queue_that_counts_our_consumers_is_believed_at_once() -> None:
    broker = Broker(Answer(0, 2, 0.5), Answer(1, 2, 0.001))
    assert broker.ready_count(consuming=True) == 0
    assert broker.requested == 1


def test_a_broker_that_never_says_more_is_believed_in_the_end() -> None:
    broker = Broker(BUSY)
    assert broker.ready_count(consuming=True) == 0
    assert 10.0 <= broker.now < 11.0
