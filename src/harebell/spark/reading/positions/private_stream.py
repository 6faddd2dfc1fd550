"""The stream that a query over an exchange has for itself: declared, bound and gone on with.

Its name is in the first offset of the query, as that of a lease group is, so a restart continues
with the same stream. The broker deletes it when nothing has read it for `streamExpires`.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace

from harebell.client.blocking import Channel
from harebell.client.errors import AccessRefused, AMQPError, NotFound, PreconditionFailed
from harebell.spark.options.offset_limits import EARLIEST, OffsetLimit, OffsetLimits
from harebell.spark.options.source_options import Options
from harebell.spark.options.values import OptionError
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.errors import SourceError

_MS = 1000


class PrivateStream:
    """The private stream of one query.

    Args:
        options: the exchange, the binding keys and the retention.
        connection: where the stream is declared and deleted.
        name: of the stream; None for a new query.

    Attributes:
        name: of the stream.
    """

    def __init__(
        self, options: Options, connection: BrokerConnection, name: str | None = None
    ) -> None:
        self._options = options
        self._connection = connection
        self.name = name or options.group or f"{options.group_prefix}-{uuid.uuid4().hex}"

    def make(self) -> None:
        """Declare and bind it; both may have been done before.

        Raises:
            SourceError: there is no such exchange, or the user may not do that.
            OptionError: a stream of this name has other retention options.
        """
        options = self._options
        self._check_exchange()
        try:
            self._connection.call(self._declare)
        except PreconditionFailed as error:
            raise OptionError(
                f"the stream {self.name!r} of the query exists with other options ({error.text}): "
                "give streamMaxAge, streamMaxBytes and streamExpires as before, or another group"
            ) from error
        except AccessRefused as error:
            raise self._refused(error) from error
        try:
            self._connection.call(self._bind)
        except AMQPError as error:
            # A stream with a name of its own has no other user, and would collect nothing.
            if options.group is None:
                self.delete()
            if isinstance(error, AccessRefused):
                raise self._refused(error) from error
            raise

    def options_of_query(self) -> Options:
        """Return the options of the query, about the stream and from its first message."""
        return replace(
            self._options,
            queue=self.name,
            queues=(self.name,),
            starting=OffsetLimits(OffsetLimit(EARLIEST)),
        )

    def delete(self) -> None:
        """Delete it, if the broker lets the user; else it expires."""
        with suppress(AMQPError, SourceError):
            self._connection.call(lambda channel: channel.delete_queue(self.name))

    def _check_exchange(self) -> None:
        name = self._options.exchange or ""
        try:
            self._connection.call(lambda channel: channel.declare_exchange(name, passive=True))
        except NotFound as error:
            url = self._options.url
            raise SourceError(
                f"there is no exchange {name!r} in the virtual host {url.vhost!r} at "
                f"{url.address}: declare it first"
            ) from error

    def _declare(self, channel: Channel) -> None:
        options = self._options
        arguments: dict[str, object] = {
            "x-queue-type": "stream",
            "x-max-age": f"{max(1, round(options.stream_max_age))}s",
            "x-stream-expires": max(1, round(options.stream_expires * _MS)),
        }
        if options.stream_max_bytes is not None:
            arguments["x-max-length-bytes"] = options.stream_max_bytes
        channel.declare_queue(self.name, durable=True, arguments=arguments)

    def _bind(self, channel: Channel) -> None:
        for key in self._options.binding_keys:
            channel.bind_queue(self.name, self._options.exchange or "", key)

    def _refused(self, error: AccessRefused) -> SourceError:
        prefix = self._options.group or self._options.group_prefix
        return SourceError(
            f"the user {self._options.url.username!r} may not make the private stream "
            f"{self.name!r} of the query ({error.text}): it needs configure, write and read on "
            f"queues whose names begin with {prefix!r}, and read on exchange "
            f"{self._options.exchange!r}"
        )
