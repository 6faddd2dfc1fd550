"""The log on its way to the log exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from harebell.base.gauge import Gauge
from harebell.config import Config
from harebell.front.convert import EDITOR, headers_of
from harebell.model.broker import Broker
from harebell.model.log_exchange import LOG_EXCHANGE
from harebell.server.limits import LOG_EXCHANGE_LINES
from harebell.server.logs.logger import Logger
from harebell.server.logs.published_log import PublishedLog
from harebell.store.log.memory import MemoryStore


def told(
    level: str,
    work: Callable[[PublishedLog], None],
    end: Callable[[PublishedLog], None] = lambda log: None,
) -> list[tuple[str, bytes]]:
    """What arrives on the exchange of a broker whose log is told while both are done."""

    async def run() -> list[tuple[str, bytes]]:
        broker = Broker(MemoryStore(Gauge()), Gauge(), headers_of, EDITOR)
        vhost = broker.vhosts["/"]
        queue = vhost.declare_queue("q")
        vhost.bind(LOG_EXCHANGE, queue, "#")
        logger = Logger(Config(log_level="error"))
        config = Config(
            log_exchange=True, log_exchange_level=level, log_exchange_plaintext_format="$msg"
        )
        log = PublishedLog(logger, asyncio.get_running_loop(), config)
        log.exchange = broker.log
        try:
            work(log)
            assert queue.ready_count() == 0
            end(log)
            while log._lines:
                await asyncio.sleep(0)
        finally:
            log.close()
        found = []
        while (got := queue.get()) is not None:
            found.append((got[0].routing_key, got[0].body))
        return found

    return asyncio.run(run())


def test_a_line_arrives_under_its_level() -> None:
    def work(log: PublishedLog) -> None:
        log.write("info", "one")
        log.write("warning", "two \u20ac")

    assert told("debug", work) == [("info", b"one"), ("warning", "two \u20ac".encode())]


def test_lines_below_the_level_stay_away() -> None:
    def work(log: PublishedLog) -> None:
        for level in ("debug", "info", "warning", "error"):
            log.write(level, level)

    assert [level for level, _ in told("warning", work)] == ["warning", "error"]


def test_a_flood_is_cut_and_the_rest_is_counted() -> None:
    def work(log: PublishedLog) -> None:
        for number in range(LOG_EXCHANGE_LINES + 7):
            log.write("info", str(number))

    found = told("info", work)
    assert len(found) == LOG_EXCHANGE_LINES + 1
    assert found[-1] == ("warning", b"7 lines of the log were left out")


def test_lines_that_wait_at_the_end_arrive_and_none_after_them() -> None:
    def work(log: PublishedLog) -> None:
        log.write("info", "stopping")

    def end(log: PublishedLog) -> None:
        log.end_publishing()
        log.write("info", "behind the end of the closed logs")

    assert told("info", work, end) == [("info", b"stopping")]


@pytest.mark.parametrize("bound", [True, False])
def test_a_line_that_publishing_causes_is_not_published(bound: bool) -> None:
    def work(log: PublishedLog) -> None:
        assert log.exchange is not None
        log.exchange.publishing = bound
        log.write("info", "caused")
        log.exchange.publishing = False

    assert told("info", work) == ([] if bound else [("info", b"caused")])
