"""Files that arrive on one channel: opened, staged, and published by their identifier.

          <-  open          identifier and size
open-ok   ->                how much is here already
          <-  stage         the rest, as a content
          <-  publish       by the identifier, perhaps from another channel and before that

A file is never thrown away because a queue is full: its publish waits, the file stays where it is
staged, and the channel's publisher is told to stop by channel.flow until there is room.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from harebell.base.errors import ErrorKind, ProtocolError, Refusal
from harebell.base.limits import FILE_RETRY_MS
from harebell.base.message import Properties
from harebell.front.contents.publishing import Publish, Routed, accept, allowed, routed
from harebell.front.session09.content import Content
from harebell.front.session09.failure import channel_caught
from harebell.front.session09.replies import hard, soft
from harebell.model.staging import Key, StagedFile
from harebell.wire.v09.methods import ChannelFlow
from harebell.wire.v09.methods_file import FileOpen, FileOpenOk, FileStage
from harebell.wire.v09.property_list import FILE

if TYPE_CHECKING:
    from harebell.front.session09.channel import Channel

_CLASS = 70
_OPEN, _STAGE, _PUBLISH = 40, 50, 60


class StageContent(Content):
    """The content of file.stage, which goes to the staging area piece by piece.

    Args:
        arrivals: of the channel.
        method: file.stage.
        staged: what it is part of.
    """

    def __init__(self, arrivals: Arrivals, method: FileStage, staged: StagedFile) -> None:
        super().__init__(
            method, arrivals.channel.connection.hub.gauge, (_CLASS, _STAGE), FILE.parse, _done
        )
        self._arrivals = arrivals
        self._staged = staged

    def release(self) -> None:
        """It is whole, or will never be."""
        super().release()
        self._arrivals.let_go(self._staged)

    def took_header(self, properties: Properties) -> None:
        """The properties are here, and the size of what follows."""
        staged = self._staged
        self._check_holder()
        if self.size != staged.size - staged.staged:
            raise soft(
                406,
                f"file.stage has {self.size} octets: of the {staged.size} of '{staged.key[2]}' "
                f"{staged.staged} are staged already",
                _CLASS,
                _STAGE,
            )
        self._arrivals.staging.describe(staged, properties.raw)

    def keep(self, payload: bytes) -> None:
        """Write a piece of the body to the staging area."""
        self._check_holder()
        self._arrivals.staging.write(self._staged, payload)

    def _check_holder(self) -> None:
        staged = self._staged
        if staged.holder is not self._arrivals:
            text = f"file '{staged.key[2]}' is staged by another channel now"
            raise soft(405, text, _CLASS, _STAGE)


def _done(channel: Channel, content: Content) -> None:
    """All of the content is staged; `release` has done what follows from that."""


class Arrivals:
    """What arrives on one channel.

    Args:
        channel: the channel.

    Attributes:
        staging: the staging area of the broker.
    """

    def __init__(self, channel: Channel) -> None:
        broker = channel.connection.broker
        self.channel = channel
        self.staging = broker.staging
        self._opened: StagedFile | None = None
        self._held: deque[tuple[Publish, StagedFile]] = deque()
        self._routed: Routed | None = None
        self._timer = broker.timers.timer(self._go_on)
        self._stopped = False
        self._over = False

    def _key(self, identifier: str) -> Key:
        return self.channel.vhost.name, self.channel.connection.user.name, identifier

    # --- staging --------------------------------------------------------------------------------

    def open(self, method: FileOpen) -> None:
        """file.open: say how much of a file is here.

        Raises:
            ProtocolError: 311, the file is larger than a message may be.
            Refusal: there is no room for it.
        """
        connection = self.channel.connection
        size, most = method.content_size, connection.message_max
        if size > most:
            text = f"message size {size} is larger than configured max size {most}"
            raise soft(311, text, _CLASS, _OPEN)
        if self._opened is not None:
            self.let_go(self._opened)
        key = self._key(method.identifier)
        self._opened = self.staging.open(key, size, self)
        connection.send(self.channel.number, FileOpenOk(self._opened.staged))

    def stage(self, method: FileStage) -> StageContent:
        """file.stage: take the content that follows.

        Raises:
            ProtocolError: 503, nothing was opened.
        """
        if self._opened is None:
            raise hard(503, "file.stage without file.open before it", _CLASS, _STAGE)
        return StageContent(self, method, self._opened)

    def let_go(self, staged: StagedFile) -> None:
        """A file is staged here no longer."""
        if self._opened is staged:
            self._opened = None
        if staged.holder is self:
            self.staging.release(staged)

    # --- publishing -----------------------------------------------------------------------------

    def publish(self, wish: Publish, identifier: str) -> None:
        """file.publish: now, or when the file is whole and there is room for it.

        Raises:
            Refusal: there is no such file, or the user may not publish it.
            ProtocolError: it is not whole, and nobody is staging it.
        """
        allowed(self.channel, wish)
        staged = self.staging.find(self._key(identifier))
        if staged is None:
            raise Refusal(ErrorKind.NOT_FOUND, f"no file '{identifier}' is staged")
        if staged.whole:
            self._held.append((wish, staged))
            self._publish_held()
        elif staged.holder is None:
            raise self._incomplete(staged)
        else:
            staged.waiting.append(lambda: self._whole(wish, staged))

    def _incomplete(self, staged: StagedFile) -> Exception:
        return soft(
            406,
            f"file '{staged.key[2]}' is not whole: {staged.staged} of {staged.size} octets are "
            "staged",
            _CLASS,
            _PUBLISH,
        )

    def _whole(self, wish: Publish, staged: StagedFile) -> None:
        """Whoever staged a file has let go of it."""
        if self._over:
            return
        try:
            if not staged.whole:
                raise self._incomplete(staged)
            self._held.append((wish, staged))
            self._publish_held()
        except (Refusal, ProtocolError) as error:
            channel_caught(self.channel.connection, self.channel, error, _CLASS, _PUBLISH)

    def _go_on(self) -> None:
        """Publish what has waited for room."""
        if self._over:
            return
        try:
            self._publish_held()
        except (Refusal, ProtocolError) as error:
            channel_caught(self.channel.connection, self.channel, error, _CLASS, _PUBLISH)

    def _publish_held(self) -> None:
        while self._held:
            wish, staged = self._held[0]
            if self._routed is None:
                # Once: to route a message can have effects of its own.
                self._routed = self._route(wish, staged)
            found = self._routed
            octets = len(found.message.body)
            if not all(queue.takes(octets) for queue in found.queues if not queue.deleted):
                self._wait()
                return
            self._held.popleft()
            self._routed = None
            accept(self.channel, found, wish.flags)
            self.staging.published(staged)
        if self._stopped:
            self._stopped = False
            self.channel.connection.send(self.channel.number, ChannelFlow(active=True))

    def _route(self, wish: Publish, staged: StagedFile) -> Routed:
        """Read a file, and find its queues; what cannot be published is not tried again."""
        body = self.staging.body(staged)
        try:
            if body is None:
                self.staging.drop(staged)
                text = f"file '{staged.key[2]}' could not be read again and has to be staged anew"
                raise soft(406, text, _CLASS, _PUBLISH)
            return routed(self.channel, wish, FILE.parse(staged.properties or b"\0\0"), body)
        except (Refusal, ProtocolError):
            self._held.popleft()
            raise

    def _wait(self) -> None:
        """Stop the publisher until there is room (AMQP 0-8, class file: never discard)."""
        connection = self.channel.connection
        if not self._stopped:
            self._stopped = True
            connection.send(self.channel.number, ChannelFlow(active=False))
        self._timer.set_earlier(connection.broker.clock.steady + FILE_RETRY_MS)

    def close(self) -> None:
        """The channel is over; what is staged stays until somebody goes on with it."""
        self._over = True
        self._timer.stop()
        self._held.clear()
        if self._opened is not None:
            self.let_go(self._opened)
