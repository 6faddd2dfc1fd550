"""How a broker takes a mistake: what it says, and whether the connection lives on.

Of what is closed the channel and the reply code are told. The texts of the errors that clients know
are compared in tests/conformance/test_errors.py; RabbitMQ's texts about broken frames show Erlang
terms.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from harebell.base.errors import ProtocolError
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from tests.conformance.frames import HEARTBEAT, METHOD
from tests.conformance.raw import Peer
from tests.conformance.sites import SocketWire
from tests.interop.differential.mistakes import OPEN, OPENING, QUEUE, STARTING, TUNING, Mistake

_PATIENCE_SECONDS = 60.0
_BATCH = 100
_PROBE_CHANNEL = 77
_UNASKED = ("channel.close-ok on an open channel",)
"""Nothing is asked behind these: RabbitMQ's reader lets go of the channel at a close-ok while the
channel's process finds the error, so an answer may come first, or the error of a question on what
is a new channel now."""


def reactions(port: int, mistakes: Iterable[Mistake]) -> dict[str, list[str]]:
    """What the broker says to each mistake, each on a connection of its own.

    Many at a time: a broker that pauses before it closes a connection does so for all of them
    together.
    """
    every = list(mistakes)
    found: dict[str, list[str]] = {}
    for start in range(0, len(every), _BATCH):
        batch = every[start : start + _BATCH]
        peers = [_begun(port, mistake.stage) for mistake in batch]
        for peer, mistake in zip(peers, batch, strict=True):
            peer.send_bytes(mistake.octets)
            if mistake.stage == OPEN and mistake.name not in _UNASKED:
                # A channel that lives on answers this behind all that it had to say before.
                peer.send(*_question(mistake), channel=mistake.channel or _PROBE_CHANNEL)
        for peer, mistake in zip(peers, batch, strict=True):
            found[mistake.name] = _reaction(peer)
            peer.wire.drop()
    return found


def _question(mistake: Mistake) -> tuple[m.Method, ...]:
    declare = m.QueueDeclare(queue=QUEUE, passive=True)
    return (declare,) if mistake.channel else (m.ChannelOpen(), declare)


def _begun(port: int, stage: str) -> Peer:
    """A connection whose handshake has come so far."""
    peer = Peer(None, SocketWire(port))  # type: ignore[arg-type]
    peer.greet()
    if stage == STARTING:
        return peer
    tune = peer.log_in()
    if stage == TUNING:
        return peer
    peer.send(m.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
    if stage == OPENING:
        return peer
    peer.ask(m.ConnectionOpen())
    peer.ask(m.ChannelOpen())
    peer.ask(m.QueueDeclare(queue=QUEUE))
    return peer


def _reaction(peer: Peer) -> list[str]:
    """All that is said until the connection ends, or until it is known to live."""
    said: list[str] = []
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        found = peer._frame(max(0.0, until - time.monotonic()))
        if found is None:
            return [*said, "ended" if peer.ended else "nothing more"]
        if found.kind == HEARTBEAT:
            continue
        if found.kind != METHOD:
            said.append(f"{found.channel} frame of type {found.kind}")
            continue
        try:
            method: Any = AMQP_0_9_1.decode(found.payload)
        except ProtocolError:
            # RabbitMQ repeats a name in its text that is no UTF-8.
            method = m.ChannelClose(int.from_bytes(found.payload[4:6]))
        if isinstance(method, m.ChannelOpenOk) and found.channel == _PROBE_CHANNEL:
            return [*said, "the connection lives"]
        if isinstance(method, m.QueueDeclareOk) and method.queue == QUEUE:
            return [*said, "the channel lives"]
        if isinstance(method, m.ConnectionClose):
            said.append(f"0 closed with {method.reply_code}")
            peer.send(m.ConnectionCloseOk())
            continue
        if not isinstance(method, m.ChannelClose):
            said.append(f"{found.channel} {method}")
        else:
            said.append(f"{found.channel} closed with {method.reply_code}")
            peer.send(m.ChannelCloseOk(), channel=found.channel)
            peer.send(m.ChannelOpen(), channel=_PROBE_CHANNEL)
