"""Memory of many unfinished messages goes back to the system when their senders have gone."""

from __future__ import annotations

from harebell.wire.v09 import methods as m
from tests.model.peer import call
from tests.patience import eventually
from tests.robustness.raw import MIB, RawClient, allocated
from tests.running import running_broker

COUNT = 14
SIZE = 26 * MIB
FRAME = 131_072


def unfinished() -> bytes:
    """A publish but for its last frame."""
    head = (60).to_bytes(2) + b"\0\0" + (SIZE + 1).to_bytes(8) + b"\0\0"
    frames = [call(1, m.BasicPublish(routing_key="q"))]
    frames.append(b"\x02\0\x01" + len(head).to_bytes(4) + head + b"\xce")
    body = b"x" * (FRAME - 8)
    sent = 0
    while sent < SIZE:
        part = body[: SIZE - sent]
        frames.append(b"\x03\0\x01" + len(part).to_bytes(4) + part + b"\xce")
        sent += len(part)
    return b"".join(frames)


def test_memory_of_unfinished_messages_goes_back_to_the_system() -> None:
    with running_broker("--memory-high-watermark", "2GiB") as broker:
        with RawClient(broker):
            before = allocated(broker)
        octets = unfinished()
        clients = [RawClient(broker) for _ in range(COUNT)]
        for client in clients:
            client.send(octets)
        assert eventually(lambda: allocated(broker) > before + COUNT * SIZE * 0.9)
        for client in clients:
            client.socket.close()
        assert eventually(lambda: allocated(broker) < before + 64 * MIB), allocated(broker) // MIB
