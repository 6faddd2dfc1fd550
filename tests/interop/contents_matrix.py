"""A file or a packet published in one version of AMQP and consumed in another, for every pair.

    python -m tests.interop.contents_matrix     prints the tables; `make test` runs the same

The versions that have the classes file and stream, each with a peer that speaks frame by frame: no
client of today knows these classes. Every property, headers, bodies that are empty, small and of
several frames; what the consumer gets has to be what was published.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harebell.wire.v010 import commands as c
from harebell.wire.v010 import structs
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.methods_older import FileAck, StreamConsume
from harebell.wire.v09.property_list import FileProperties
from tests.conformance.arriving import unique
from tests.conformance.file_stream.versions import Peer10t
from tests.conformance.sites import SocketSite
from tests.conformance.v010.contents import Desk, begin_desks
from tests.conformance.v010.raw import Peer010
from tests.conformance.v08.contents import Peer08
from tests.interop.matrix import Outcome, table

VERSIONS = ("0-8", "0-9", "0-10t", "0-10")
"""Those that have the classes."""
SIZES = {"empty": 0, "small": 100, "300 kB": 300_000}
SHARED: dict[str, Any] = {
    "content_type": "application/pdf",
    "content_encoding": "gzip",
    "headers": {"number": -7, "text": "Grüße", "table": {"inner": {"deep": 1}}},
    "priority": 7,
    "timestamp": 1_186_000_000,
}
"""The properties of packets; the headers are of the types that every version reads."""
BRIEF = {**SHARED["headers"], "table": '{"inner": {"deep": 1}}'}
"""The headers for a peer of the transitional 0-10 that has shown to know texts and numbers only."""
ALONE = {
    "reply_to": "answers",
    "message_id": "m-1",
    "filename": "report.pdf",
    "cluster_id": "cluster",
}
"""What files have beside them."""
KINDS = {"file": {**SHARED, **ALONE}, "packet": SHARED}


class Peer09(Peer08):
    """The peer of 0-8 in 0-9."""

    SPEC = AMQP_0_9
    GREETING = b"AMQP\x01\x01\x00\x09"


@dataclass(frozen=True)
class Got:
    """What a consumer got."""

    properties: dict[str, Any]
    body: bytes


class Older:
    """A peer of 0-8, 0-9 or the transitional 0-10.

    Args:
        peer: with channel 1 open.
    """

    def __init__(self, peer: Peer08) -> None:
        self._peer = peer

    def publish(self, kind: str, queue: str, body: bytes) -> None:
        """Publish to a queue, and wait until it is there."""
        if kind == "file":
            self._peer.publish_file(
                queue, body, unique("id"), properties=FileProperties(**KINDS[kind])
            )
        else:
            self._peer.packet(queue, body, **KINDS[kind])
        self._peer.wait_for_count(queue, 1)

    def take(self, kind: str, queue: str) -> Got:
        """Consume one."""
        if kind == "file":
            self._peer.files(queue)
            found = self._peer.take_file()
            self._peer.send(FileAck(found.method.delivery_tag))
        else:
            self._peer.ask(StreamConsume(queue=queue))
            found = self._peer.take_packet()
        names = KINDS[kind]
        return Got({name: getattr(found.properties, name) for name in names}, found.body)

    def close(self) -> None:
        """The end."""
        self._peer.done()


class Final:
    """A peer of 0-10.

    Args:
        desk: a session.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def publish(self, kind: str, queue: str, body: bytes) -> None:
        """Publish to a queue, and wait until it is there."""
        if kind == "file":
            self._desk.publish_file(
                queue, body, unique("id"), structs.FileProperties(**KINDS[kind])
            )
        else:
            self._desk.packet(queue, body, **KINDS[kind])

    def take(self, kind: str, queue: str) -> Got:
        """Consume one."""
        tag = unique("t")
        properties: Any
        if kind == "file":
            self._desk.files(queue, tag)
            found = self._desk.take_file()
            self._desk.do(c.FileAck(found.deliver.delivery_tag))
            properties, body = found.properties, found.body
        else:
            self._desk.packets(queue, tag)
            packet = self._desk.await_one(c.StreamDeliver)
            properties, body = packet.header[0], packet.body
        return Got({name: getattr(properties, name) for name in KINDS[kind]}, body)

    def close(self) -> None:
        """The end."""
        self._desk.got.clear()
        self._desk.leave()


Speaker = Older | Final


class Contents:
    """A broker, and peers of each version.

    Args:
        site: the broker.
    """

    def __init__(self, site: SocketSite) -> None:
        self._site = site
        self._makers: dict[str, Callable[[], Speaker]] = {
            "0-8": lambda: self._older(Peer08),
            "0-9": lambda: self._older(Peer09),
            "0-10t": lambda: self._older(Peer10t),
            "0-10": lambda: Final(begin_desks(Peer010(site, site.connect()))[0]),
        }

    def _older(self, kind: type[Peer08]) -> Older:
        peer = kind(self._site, self._site.connect())
        peer.open()
        return Older(peer)

    @contextmanager
    def speaker(self, version: str) -> Iterator[Speaker]:
        """A peer, while it is needed."""
        made = self._makers[version]()
        try:
            yield made
        finally:
            made.close()

    def exchange(self, kind: str, publisher: str, consumer: str, size: str) -> Outcome:
        """One file or packet on its way."""
        body = (bytes(range(256)) * (SIZES[size] // 256 + 1))[: SIZES[size]]
        owner = Peer08(self._site, self._site.connect())
        owner.open()
        queue = owner.queue("contents")
        with self.speaker(publisher) as sender, self.speaker(consumer) as receiver:
            sender.publish(kind, queue, body)
            got = receiver.take(kind, queue)
        owner.done()
        wanted = {**KINDS[kind], "headers": BRIEF} if consumer == "0-10t" else KINDS[kind]
        lost = [name for name, value in wanted.items() if not _same(got.properties[name], value)]
        lost += [] if got.body == body else ["body"]
        return Outcome(publisher, consumer, size, kind, tuple(lost))


def _same(found: Any, wanted: Any) -> bool:
    moment = getattr(found, "timestamp", None)
    return bool((int(moment()) if callable(moment) else found) == wanted)


def every(found: Contents, kind: str) -> list[Outcome]:
    """Every pair and size of one kind."""
    return [
        found.exchange(kind, publisher, consumer, size)
        for publisher in VERSIONS
        for consumer in VERSIONS
        for size in SIZES
    ]


def main() -> int:
    """Print the tables for a broker of our own; exit code 1 when something was lost."""
    with tempfile.TemporaryDirectory() as directory:
        site = SocketSite(Path(directory))
        try:
            outcomes = {kind: every(Contents(site), kind) for kind in KINDS}
        finally:
            site.close()
    for kind, found in outcomes.items():
        sys.stdout.write(f"{kind}s\n{table(found, VERSIONS)}\n\n")
    return int(any(outcome.lost for found in outcomes.values() for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
