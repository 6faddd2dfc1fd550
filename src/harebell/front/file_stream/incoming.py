"""Files from the client of one channel: opened, staged, and published by their identifier.

          <-  open          identifier and size
open-ok   ->                how much is stored already
          <-  stage         the rest, as a content
          <-  publish       by the identifier, perhaps from another channel and before that

A file is never dropped because a queue is full: its publish waits, the file stays staged, and the
channel's publisher is stopped, if its version has flow control, until there is space.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from harebell.auth.permissions import WRITE
from harebell.base.errors import ErrorKind, ProtocolError, Refusal
from harebell.front.common.errors import hard, soft
from harebell.front.common.permission import check_some
from harebell.front.file_stream.publishing import Publish, Routed, accept, allowed, routed
from harebell.front.limits import FILE_RETRY_MS
from harebell.model.staging import Key, StagedFile
from harebell.wire.v09.methods_older import FileOpenOk
from harebell.wire.v09.property_list import FILE

if TYPE_CHECKING:
    from harebell.front.file_stream.file_stream_channel import FileStreamChannel

_CLASS = 70
_OPEN, _STAGE, _PUBLISH = 40, 50, 60


class _Held:
    """A publish that waits for its file, or for space.

    Args:
        request: the fields of the method.
        staged: the file.

    Attributes:
        number: its number from `put_off`; 0 while it is being executed.
    """

    __slots__ = ("number", "request", "staged")

    def __init__(self, request: Publish, staged: StagedFile) -> None:
        self.request = request
        self.staged = staged
        self.number = 0


class Arrivals:
    """The files that a client stages and publishes on one channel.

    Args:
        channel: where the files come from.

    Attributes:
        staging: the staging area of the broker.
        opened: the open file; None for none.
        announced: the staged size that file.open-ok announced.
    """

    def __init__(self, channel: FileStreamChannel) -> None:
        broker = channel.connection.broker
        self.channel = channel
        self.staging = broker.staging
        self.opened: StagedFile | None = None
        self.announced = 0
        self._held: deque[_Held] = deque()
        self._routed: Routed | None = None
        self._timer = broker.timers.timer(self._go_on)
        self._stopped = False
        self._over = False

    def _key(self, identifier: str) -> Key:
        return self.channel.vhost.name, self.channel.connection.user.name, identifier

    # --- staging --------------------------------------------------------------------------------

    def open(self, identifier: str, size: int) -> None:
        """file.open: reply with how much of the file is stored.

        Raises:
            ProtocolError: 311, the file exceeds the message size limit.
            Refusal: the disk has no space for it, or the user may publish nowhere.
        """
        check_some(self.channel, "a staged file", WRITE)
        limit = self.channel.connection.message_max
        if size > limit:
            text = f"message size {size} is larger than configured max size {limit}"
            raise soft(311, text, _CLASS, _OPEN)
        # file.stage names no file: it belongs to the file that was opened last.
        if self.opened is not None:
            self.detach(self.opened)
        self.opened = self.staging.open(self._key(identifier), size, self)
        self.announced = self.opened.staged
        self.channel.say(FileOpenOk(self.announced))

    def to_stage(self) -> StagedFile:
        """Return the file of file.stage.

        Raises:
            ProtocolError: 503, no file is open.
        """
        if self.opened is None:
            raise hard(503, "file.stage without file.open before it", _CLASS, _STAGE)
        return self.opened

    def describe(self, staged: StagedFile, raw: bytes) -> None:
        """Take the encoded property list of a file.

        Raises:
            ProtocolError: 405, another channel is staging it.
        """
        self.check_holder(staged)
        self.staging.describe(staged, raw)

    def write(self, staged: StagedFile, payload: bytes) -> None:
        """Write the next bytes of a file.

        Raises:
            ProtocolError: 405, another channel is staging it.
            Refusal: the disk has no space for them.
        """
        self.check_holder(staged)
        self.staging.write(staged, payload)

    def check_holder(self, staged: StagedFile) -> None:
        """Refuse to stage a file that another channel is staging.

        Raises:
            ProtocolError: 405, another channel is staging it.
        """
        if staged.holder is not self:
            text = f"file '{staged.key[2]}' is staged by another channel now"
            raise soft(405, text, _CLASS, _STAGE)

    def detach(self, staged: StagedFile) -> None:
        """Release a file: this channel no longer stages it."""
        if self.opened is staged:
            self.opened = None
        if staged.holder is self:
            self.staging.release(staged)

    # --- publishing -----------------------------------------------------------------------------

    def publish(self, request: Publish, identifier: str) -> None:
        """file.publish: now, or when the file is complete and the queues have space.

        Raises:
            Refusal: the file does not exist, or the user may not publish it.
            ProtocolError: the file is incomplete, and no channel is staging it.
        """
        allowed(self.channel, request)
        staged = self.staging.find(self._key(identifier))
        if staged is None:
            raise Refusal(ErrorKind.NOT_FOUND, f"no file '{identifier}' is staged")
        held = _Held(request, staged)
        if staged.whole:
            # Behind earlier ones that wait for space, so that files keep their order.
            self._held.append(held)
            self._publish_held()
            if held in self._held:
                held.number = self.channel.put_off()
        elif staged.holder is None:
            # No channel would ever complete it.
            raise self._incomplete(staged)
        else:
            held.number = self.channel.put_off()
            staged.waiting.append(lambda: self._whole(held))

    def _incomplete(self, staged: StagedFile) -> Exception:
        return soft(
            406,
            f"file '{staged.key[2]}' is not whole: {staged.staged} of {staged.size} octets are "
            "staged",
            _CLASS,
            _PUBLISH,
        )

    def _whole(self, held: _Held) -> None:
        """Continue a publish when its file has been staged."""
        if self._over:
            return
        try:
            if not held.staged.whole:
                raise self._incomplete(held.staged)
            self._held.append(held)
            self._publish_held()
        except (Refusal, ProtocolError) as error:
            self._failed(error, held.number)

    def _go_on(self) -> None:
        """Publish files that waited for space."""
        if self._over or not self._held:
            return
        first = self._held[0].number
        try:
            self._publish_held()
        except (Refusal, ProtocolError) as error:
            self._failed(error, first)

    def _failed(self, error: Exception, number: int) -> None:
        self.channel.caught(error, _CLASS, _PUBLISH, number)

    def _publish_held(self) -> None:
        while self._held:
            held = self._held[0]
            if self._routed is None:
                # Route only once, because routing can have side effects.
                self._routed = self._route(held.request, held.staged)
            routed_content = self._routed
            byte_count = len(routed_content.message.body)
            if not all(
                queue.takes(byte_count) for queue in routed_content.queues if not queue.deleted
            ):
                self._wait()
                return
            self._held.popleft()
            self._routed = None
            result = accept(self.channel, routed_content, held.request.flags)
            self.staging.published(held.staged)
            self.channel.went_through(held.number, result)
        if self._stopped:
            self._stopped = False
            self.channel.stop_publisher(stop=False)

    def _route(self, request: Publish, staged: StagedFile) -> Routed:
        """Read a file and route it; a file that cannot be published is not tried again."""
        body = self.staging.body(staged)
        try:
            if body is None:
                self.staging.drop(staged)
                text = f"file '{staged.key[2]}' could not be read again and has to be staged anew"
                raise soft(406, text, _CLASS, _PUBLISH)
            return routed(self.channel, request, FILE.parse(staged.properties or b"\0\0"), body)
        except (Refusal, ProtocolError):
            self._held.popleft()
            raise

    def _wait(self) -> None:
        """Stop the publisher until there is space (AMQP 0-8, class file: never discard)."""
        if not self._stopped:
            self._stopped = True
            self.channel.stop_publisher(stop=True)
        clock = self.channel.connection.broker.clock
        self._timer.set_earlier(clock.steady + FILE_RETRY_MS)

    def close(self) -> None:
        """Close the channel; staged files are kept until a client continues them."""
        self._over = True
        self._timer.stop()
        self._held.clear()
        if self.opened is not None:
            self.detach(self.opened)
