"""Plant twelve problems in a broker, for `harebell demo --bad-day`: findings name each of them.

    queue       what is wrong                                    finding
    orders      it grows, and will be full                       queue-fills
    invoices    it has no consumer                               no-consumer
    payments    its consumer holds messages, acknowledges none   all-unacknowledged
    labels      its consumer gives every message back            redelivery-loop
    emails      its consumer is slow                             old-messages
    returns     its consumer rejects                             dead-letters
    offers      its messages expire before they are consumed     dead-letters

Besides, transactions grow and are not committed, so memory grows; a client opens a connection for
each message; two queries report that they have failed and that they are behind; the certificate of
the listener for TLS has expired.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path

from harebell.cli.limits import BAD_DAY_TRANSACTION_BYTES
from harebell.client.blocking import Channel, connect
from harebell.client.errors import AMQPError

PLANTED = (
    *(("trend", "memory"), ("queue-fills", "orders"), ("no-consumer", "invoices")),
    *(("all-unacknowledged", "payments"), ("redelivery-loop", "labels")),
    *(("old-messages", "emails"), ("dead-letters", "offers"), ("dead-letters", "returns")),
    *(("query", "clicks-to-lake"), ("query", "stock-to-lake")),
    *(("certificate", "expired.pem"), ("connection-churn", "connections")),
)
"""What is planted, as rules with the names of what they find."""
_PICTURE = b"\0" * 1_048_576
_BODY = b"{}"
_REPORT_SECONDS = 10.0
_TRANSACTIONS = 3
_FLAGS = (
    *("--health-interval", "1000", "--health-no-consumer-seconds", "10"),
    *("--health-held-seconds", "10", "--health-oldest-seconds", "25"),
    *("--health-connections-per-second", "1", "--memory-high-watermark", "600MiB"),
    # The disk is that of the machine, and what else fills it is not a part of the demo.
    *("--disk-free-limit", "0"),
    # Some of the clients read nothing for minutes.
    *("--heartbeat", "0"),
)

_CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBDjCBtgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwHhcN
MjQwMTAxMDAwMDAwWhcNMjUwMTAxMDAwMDAwWjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR+j5G8TTyFisnmKWDADwOZZIEb
rZ0Ze2ax7REmGyGUcbHnANOZId4KZg+EC4fjZAjqjPvLVUguihkCVBqn9nPGMAoG
CCqGSM49BAMCA0cAMEQCIAqXt+Z6+/YiFG2FaMtCfDiabnts/mGsMi/QMy8Tjbl4
AiAqFiSm6yYNDZWJjHYl/6TEYRaaoSMBvgwHoQSrohizmw==
-----END CERTIFICATE-----
"""
# It expired in 2025 and is for localhost alone: it protects nothing.
_KEY = """-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIJiCFynSG/SdiEoyMylE0cOP/g4w89nmvrMDCtsvlEvdoAoGCCqGSM49
AwEHoUQDQgAEfo+RvE08hYrJ5ilgwA8DmWSBG62dGXtmse0RJhshlHGx5wDTmSHe
CmYPhAuH42QI6oz7y1VILooZAlQap/Zzxg==
-----END EC PRIVATE KEY-----
"""


def flags(directory: Path, tls_port: int) -> tuple[str, ...]:
    """Return the flags of the broker, whose thresholds fit into a minute.

    Args:
        directory: where its certificate is put.
        tls_port: its port for TLS.
    """
    certificate, key = directory / "expired.pem", directory / "expired.key"
    certificate.write_text(_CERTIFICATE, encoding="ascii")
    key.write_text(_KEY, encoding="ascii")
    tls = ("--tls-port", str(tls_port), "--tls-cert", str(certificate), "--tls-key", str(key))
    return (*_FLAGS, *tls)


class BadDay:
    """The clients of a broker on a bad day, each in a thread.

    Args:
        url: of the broker.

    Attributes:
        failures: what went wrong with them that should not.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.failures: list[AMQPError] = []

    def __enter__(self) -> BadDay:
        with connect(self._url) as link:
            _declare(link.channel())
        self._begin(self._churn)
        self._begin(self._grow)
        for client in (self._fill, self._drain_slowly, self._hold, self._give_back, self._lag):
            self._begin_with_channel(client)
        for client in (self._reject, self._come_late, self._offer, self._report):
            self._begin_with_channel(client)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _begin(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._guarded, args=(work,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _begin_with_channel(self, client: Callable[[Channel], None]) -> None:
        def work() -> None:
            name = client.__name__.strip("_").replace("_", " ")
            with connect(self._url, properties={"connection_name": f"bad day: {name}"}) as link:
                client(link.channel())

        self._begin(work)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except AMQPError as error:
            # The broker may end before its clients.
            if not self._stop.is_set():
                self.failures.append(error)

    def _every(self, seconds: float) -> Iterator[None]:
        """Yield again and again, with a pause."""
        while not self._stop.wait(seconds):
            yield

    # --- the clients ------------------------------------------------------------------------------

    def _fill(self, channel: Channel) -> None:
        channel.publish_many([_BODY] * 4_000, routing_key="orders")
        for _ in self._every(0.1):
            with suppress(AMQPError):  # it is full at last
                channel.publish_many([_BODY] * 4, routing_key="orders")

    def _drain_slowly(self, channel: Channel) -> None:
        self._consume(channel, "orders", 0.2)

    def _hold(self, channel: Channel) -> None:
        channel.publish_many([_BODY] * 100, routing_key="payments")
        with channel.consume("payments", prefetch=10):
            self._stop.wait()

    def _give_back(self, channel: Channel) -> None:
        channel.publish_many([_BODY] * 3, routing_key="labels")
        with channel.consume("labels", prefetch=1, timeout=1) as consumer:
            for _ in self._every(0.02):
                for message in consumer:
                    message.nack(requeue=True)
                    break

    def _lag(self, channel: Channel) -> None:
        channel.publish_many([_BODY] * 5_000, routing_key="emails")
        self._consume(channel, "emails", 0.5)

    def _consume(self, channel: Channel, queue: str, seconds: float) -> None:
        """Acknowledge a message now and then."""
        with channel.consume(queue, prefetch=1, timeout=1) as consumer:
            for _ in self._every(seconds):
                for message in consumer:
                    message.ack()
                    break

    def _reject(self, channel: Channel) -> None:
        with channel.consume("returns", prefetch=1, timeout=1) as consumer:
            for _ in self._every(0.2):
                channel.publish_many([_BODY], routing_key="returns")
                for message in consumer:
                    message.reject()
                    break

    def _offer(self, channel: Channel) -> None:
        for _ in self._every(0.2):
            channel.publish_many([_BODY], routing_key="offers")

    def _come_late(self, channel: Channel) -> None:
        self._consume(channel, "offers", 2.0)

    def _grow(self) -> None:
        """Fill transactions one after the other, and roll them back at the end."""
        link = connect(self._url, properties={"connection_name": "bad day: grow"})
        with link, suppress(_RolledBack), ExitStack() as transactions:
            for _ in range(_TRANSACTIONS):
                channel = link.channel()
                transactions.enter_context(channel.transaction())
                for _ in islice(self._every(0.8), BAD_DAY_TRANSACTION_BYTES // len(_PICTURE)):
                    channel.publish_nowait(_PICTURE, routing_key="invoices")
            self._stop.wait()
            raise _RolledBack

    def _report(self, channel: Channel) -> None:
        error = "no space left for table stock"
        channel.report_query("stock-to-lake", {"state": "failed", "error": error})
        behind = {"lag_seconds": 7_200, "lag_messages": 90_000, "sources": ["clicks"]}
        while True:
            channel.report_query("clicks-to-lake", behind)
            if self._stop.wait(_REPORT_SECONDS):
                return

    def _churn(self) -> None:
        for _ in self._every(0.2):
            with connect(self._url, properties={"connection_name": "bad day: one message"}):
                pass


class _RolledBack(Exception):
    """Ends a transaction that was never to be committed."""


def _declare(channel: Channel) -> None:
    for name in ("invoices", "payments", "labels", "emails", "dead"):
        channel.declare_queue(name)
    full = {"x-max-length": 20_000, "x-overflow": "reject-publish"}
    channel.declare_queue("orders", arguments=full)
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.declare_queue("returns", arguments=letters)
    channel.declare_queue("offers", arguments={**letters, "x-message-ttl": 500})
    channel.publish_many([_BODY] * 200, routing_key="invoices")
