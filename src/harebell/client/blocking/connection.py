# Made from ../aio/connection.py by tools/blocking_api.py: change that file and run the tool.
"""Connections: opening channels, connecting, and connecting again after a loss."""

from __future__ import annotations

import time

from harebell.client import tls
from harebell.client.blocking.channel import Channel
from harebell.client.blocking.connection_waits import ConnectionWaits
from harebell.client.blocking.requests import Requester
from harebell.client.blocking.transport import BlockingTransport, dial
from harebell.client.errors import AMQPError, ConnectionLost
from harebell.client.protocol.recovery import (
    Backoff,
    Recovery,
    Replay,
    connects_again,
    refused,
    replay,
    resend,
)
from harebell.client.protocol.v09.channel import CoreChannel


class Connection(ConnectionWaits):
    """A connection to a broker. Get one from `connect`."""

    def channel(self, *, confirms: bool | None = None) -> Channel:
        """Open a channel.

        Args:
            confirms: whether `publish` waits for the broker's confirm; None waits if the version of
                AMQP has confirms.
        """
        self.usable()
        core = self.finish(self._core.open_channel(confirms=confirms, keep=self._resends))
        channel = Channel(self, core)
        self.channels[core.number] = channel
        return channel

    def requester(self) -> Requester:
        """Return a client for requests and replies (RPC); use it with `with`."""
        return Requester(self)

    def _dial(self) -> BlockingTransport:
        # Invalid settings fail before anything is sent.
        context = tls.chosen_context(self.url, self._given_context)
        return dial(self._new_core(self._now()), self.url, context)

    def _open(self) -> None:
        """Connect for the first time; try again as `recover` says."""
        backoff = Backoff(self._recovery or Recovery(), self._rng)
        tried = 0
        while True:
            try:
                link = self._dial()
            except AMQPError as error:
                tried += 1
                if not connects_again(error, self._recovery, tried):
                    raise
                self._reports.failed(tried, error)
            else:
                link.core.recorder = self._topology
                self._use(link)
                return
            time.sleep(backoff.delay())

    def _reopen(self, backoff: Backoff) -> bool:
        """Try to reconnect until it succeeds; False if the recovery gives up."""
        while True:
            time.sleep(backoff.delay())
            try:
                self._restore()
            except AMQPError as failure:
                backoff.error = failure
                self._reports.failed(backoff.tried, failure)
                if not backoff.failed(refused=refused(failure)):
                    return False
            else:
                self.recovering = False
                self._reports.regained(backoff.tried)
                if self.on_recovered is not None:
                    self.on_recovered()
                return True

    def _restore(self) -> None:
        """Make one attempt: connect and restore the topology."""
        assert self._topology is not None, "nothing was recorded"
        link = self._dial()
        old = {number: channel.core for number, channel in self.channels.items()}
        steps = replay(link.core, self._topology, old)
        try:
            channels = _replayed(link, steps)
        except BaseException:
            steps.close()
            link.abort()
            raise
        self._adopt(channels, old)
        self._use(link)
        for number, core in channels.items():
            resend(old[number], core)
        link.flush()
        for channel in self.channels.values():
            for inbox in channel.inboxes:
                inbox.wake()


def _replayed(link: BlockingTransport, steps: Replay) -> dict[int, CoreChannel]:
    """Run a replay over a connection; return its channels."""
    try:
        call = next(steps)
        while True:
            link.answer(call)
            call = steps.send(None) if call.error is None else steps.throw(call.error)
    except StopIteration as end:
        channels: dict[int, CoreChannel] = end.value
    if link.core.finished:
        raise link.core.error or ConnectionLost("the connection broke again while it recovered")
    return channels
