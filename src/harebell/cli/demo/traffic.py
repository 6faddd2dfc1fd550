"""Publish the flights, and add up their delays as three consumers.

publisher --confirms--> exchange `flights` --EWR.#--> queue `flights.EWR` --> consumer
--JFK.#--> queue `flights.JFK` --> consumer
--LGA.#--> queue `flights.LGA` --> consumer
--#------> stream `flights.all`
consumers --flights that are an hour late--> queue `flights.late`
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from harebell.base.slices import in_pieces
from harebell.cli.demo.flights import AIRPORTS, Flight
from harebell.cli.limits import DEMO_CHUNK_FLIGHTS, DEMO_LOOK_SECONDS, DEMO_PATIENCE_SECONDS
from harebell.client.blocking import Channel, Connection, connect
from harebell.client.errors import AMQPError

EXCHANGE = "flights"
STREAM = "flights.all"
LATE = "flights.late"
_LATE_MINUTES = 60
_ACK_EVERY = 100
_PREFETCH = 500
_PERSISTENT = 2

Sums = dict[tuple[str, int], tuple[int, int]]
"""By airport and hour: minutes of delay, and of how many flights."""


def declare(channel: Channel) -> None:
    """Declare the exchange, the queues and the stream."""
    channel.declare_exchange(EXCHANGE, "topic", durable=True)
    for airport in AIRPORTS:
        channel.declare_queue(_queue(airport), durable=True)
        channel.bind_queue(_queue(airport), EXCHANGE, f"{airport}.#")
    channel.declare_queue(STREAM, durable=True, arguments={"x-queue-type": "stream"})
    channel.bind_queue(STREAM, EXCHANGE, "#")
    channel.declare_queue(LATE, durable=True)


def _queue(airport: str) -> str:
    return f"flights.{airport}"


class Traffic:
    """What passes through the broker.

    Args:
        url: of the broker.
        flights: those to publish, in this order.
        seconds: how long the publisher takes; 0 for as fast as it can.

    Attributes:
        published: flights that the broker has confirmed.
        late: flights that were an hour late or more.
    """

    def __init__(self, url: str, flights: Sequence[Flight], seconds: float) -> None:
        self._url = url
        self._flights = flights
        self._seconds = seconds
        self._stop = threading.Event()
        self._failures: list[AMQPError] = []
        self._expected = Counter(flight.routing_key.partition(".")[0] for flight in flights)
        self._consumed = dict.fromkeys(AIRPORTS, 0)
        self._late = dict.fromkeys(AIRPORTS, 0)
        self._sums: dict[str, Sums] = {airport: {} for airport in AIRPORTS}
        self.published = 0

    @property
    def consumed(self) -> int:
        """Flights that the consumers have acknowledged."""
        return sum(self._consumed.values())

    @property
    def late(self) -> int:
        """Flights that were an hour late or more."""
        return sum(self._late.values())

    @property
    def sums(self) -> Sums:
        """The sums of all consumers."""
        return {key: value for sums in self._sums.values() for key, value in sums.items()}

    def run(self, progress: Callable[[], None]) -> None:
        """Publish and consume everything; `progress` is called now and then.

        Raises:
            AMQPError: the broker has gone, or refuses something.
        """
        threads = [threading.Thread(target=self._guarded, args=(self._publish,), daemon=True)]
        for airport in AIRPORTS:
            consume = self._consumer_of(airport)
            threads.append(threading.Thread(target=self._guarded, args=(consume,), daemon=True))
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                progress()
                time.sleep(DEMO_LOOK_SECONDS)
        finally:
            # Also when Ctrl-C comes: the threads have to be off the broker before it stops.
            self._stop.set()
            for thread in threads:
                thread.join()
        if self._failures:
            raise self._failures[0]
        progress()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except AMQPError as error:
            self._failures.append(error)
            self._stop.set()

    def _connect(self, name: str) -> Connection:
        return connect(self._url, properties={"connection_name": name})

    def _publish(self) -> None:
        with self._connect("demo publisher") as link:
            channel = link.channel()
            begun = time.monotonic()
            for chunk in in_pieces(self._flights, DEMO_CHUNK_FLIGHTS):
                items = [(flight.routing_key, flight.body) for flight in chunk]
                channel.publish_many(items, exchange=EXCHANGE, delivery_mode=_PERSISTENT)
                self.published += len(chunk)
                due = begun + self._seconds * self.published / len(self._flights)
                if self._stop.wait(max(due - time.monotonic(), 0.0)):
                    return

    def _consumer_of(self, airport: str) -> Callable[[], None]:
        return lambda: self._consume(airport)

    def _consume(self, airport: str) -> None:
        sums, expected, count = self._sums[airport], self._expected[airport], 0
        with self._connect(f"demo consumer {airport}") as link:
            channel = link.channel()
            while count < expected and not self._stop.is_set():
                consumer = channel.consume(
                    _queue(airport), prefetch=_PREFETCH, timeout=DEMO_PATIENCE_SECONDS
                )
                for message in consumer:
                    count += 1
                    self._add(channel, sums, airport, message.body)
                    if count % _ACK_EVERY == 0 or count == expected:
                        message.ack(multiple=True)
                        self._consumed[airport] = count
                    if count == expected or self._stop.is_set():
                        break
                consumer.cancel()

    def _add(self, channel: Channel, sums: Sums, airport: str, body: bytes) -> None:
        flight = json.loads(body)
        delay = flight["dep_delay"]
        if delay is None:
            return
        minutes, flights = sums.get((airport, flight["hour"]), (0, 0))
        sums[airport, flight["hour"]] = (minutes + delay, flights + 1)
        if delay >= _LATE_MINUTES:
            channel.publish_nowait(body, routing_key=LATE, delivery_mode=_PERSISTENT)
            self._late[airport] += 1
