"""Parse the options of `write.format("harebell")`: names, defaults and checks.

Like the options of the source they are parsed before any connection is opened, and passwords
are never printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harebell.base.limits import NAME_BYTES
from harebell.client import limits as client_limits
from harebell.client.url import NEWEST, URL
from harebell.spark import limits
from harebell.spark.options.access import ACCESS, read_options
from harebell.spark.options.values import (
    OptionError,
    Reader,
    choice,
    option,
    problems,
    read_flag,
    read_queue,
    read_seconds,
    read_seconds_or_none,
    read_text,
    table_of,
    unknown,
    whole,
)

EXACTLY_ONCE, PUBLISHING_ID, AT_LEAST_ONCE = "exactly-once", "publishing-id", "at-least-once"
FAIL, DROP, DEAD_LETTER = "fail", "drop", "dead-letter"
_OF_SPARK = ("checkpointLocation", "queryName", "outputMode")
"""Options that Spark adds to the sink's own."""


def _read_name(name: str, value: str) -> str:
    if len(value.encode()) > NAME_BYTES:
        raise OptionError(f"the option {name} must have at most {NAME_BYTES} bytes")
    return value


def _read_given_name(name: str, value: str) -> str:
    return _read_name(name, read_text(name, value))


@dataclass(frozen=True)
class SinkOptions:
    """Where and how rows are published.

    Args:
        url: address of the broker, with user and password.
        exchange: for all rows; None if no option sets it.
        routing_key: for all rows; None if no option sets it.
        super_stream: whether the exchange is a super stream, whose partitions rows go to.
        delivery: the delivery guarantee; None is the best that the broker supports.
        mandatory: whether unroutable rows count as failed.
        dead_letter: the exchange for unroutable rows, and for bad ones; "" for none.
        bad_rows: what happens to rows that cannot become messages: `FAIL`, `DROP` or `DEAD_LETTER`.
        persistent: whether messages are persistent, unless a row sets its own delivery mode.
        confirm_timeout: seconds without a confirm after which a task fails.
        reconnect_timeout: seconds to reconnect after a connection is lost; 0 disables reconnecting.
        connection_wait: seconds that a task waits where the broker allows no more connections.
        max_in_flight: most rows of a task that wait for their confirm.
        ignore_unknown: leave out columns that messages do not have.
        publisher: name of the publisher, for `exactly-once` and `publishing-id`.
        version: number of the publisher's batch; for batch writes.
    """

    url: URL = field(repr=False)
    exchange: str | None = option(_read_name)
    routing_key: str | None = option(_read_name)
    super_stream: bool = option(read_queue, False)
    delivery: str | None = option(choice(EXACTLY_ONCE, PUBLISHING_ID, AT_LEAST_ONCE))
    mandatory: bool = option(read_flag, True)
    dead_letter: str = option(_read_given_name, "")
    bad_rows: str = option(choice(FAIL, DROP, DEAD_LETTER), FAIL)
    persistent: bool = option(read_flag, True)
    confirm_timeout: float = option(read_seconds, limits.SPARK_FETCH_TIMEOUT_SECONDS)
    reconnect_timeout: float = option(read_seconds_or_none, limits.SPARK_RECONNECT_SECONDS)
    connection_wait: float = option(read_seconds, limits.SPARK_CONNECTION_WAIT_SECONDS)
    max_in_flight: int = option(whole(1, limits.SPARK_IN_FLIGHT_MAX), client_limits.PUBLISH_WINDOW)
    ignore_unknown: bool = option(read_flag, False, "ignoreUnknownColumns")
    publisher: str | None = option(_read_given_name, None, "txnAppId")
    version: int | None = option(whole(0, limits.SPARK_TXN_VERSION_MAX), None, "txnVersion")

    @property
    def delivery_mode(self) -> int:
        """2 for persistent messages, 1 for others."""
        return 2 if self.persistent else 1


def parse_sink(
    given: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> SinkOptions:
    """Read the options.

    Args:
        given: the options as Spark hands them over.
        environment: used where the option `url` is not given.

    Raises:
        OptionError: an option is wrong; the text says how to correct it.
    """
    values = {name.lower(): value for name, value in given.items()}
    for name in given:
        if name.lower() == "path":
            raise OptionError(
                "messages have no path: say where to by the options exchange and routingKey, and "
                "call save() or start() without one"
            )
        if name.lower() not in SINK_NAMES:
            raise OptionError(unknown(name, SINK_NAMES))
    return _checked(read_options(values, _READERS, SINK_NAMES, environment))


def problems_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with each option by itself, by its name as it is given."""
    return problems(given, _READERS, SINK_NAMES)


def _checked(read: dict[str, Any]) -> SinkOptions:
    """Check options that depend on each other."""
    queue = read.pop("queue", None)
    if queue is not None:
        for name, option in (("exchange", "exchange"), ("routing_key", "routingKey")):
            if name in read:
                raise OptionError(
                    f"the options queue and {option} exclude each other: queue is short for the "
                    "default exchange and the queue's name as routing key"
                )
        read["exchange"], read["routing_key"] = "", queue
    super_stream = read.pop("super_stream", None)
    if super_stream is not None:
        for name, option in (("exchange", "exchange or queue"), ("routing_key", "routingKey")):
            if name in read:
                raise OptionError(
                    f"the options superStream and {option} exclude each other: the partition of a "
                    "row is chosen by its column routing_key"
                )
        read["exchange"], read["super_stream"] = super_stream, True
    # A dead-letter exchange is for both: messages without a route, and rows that make none.
    if "bad_rows" not in read and read.get("dead_letter"):
        read["bad_rows"] = DEAD_LETTER
    options = SinkOptions(**read)
    if options.bad_rows == DEAD_LETTER and not options.dead_letter:
        raise OptionError(
            "the option badRows=dead-letter needs the option deadLetter: the exchange to which "
            "rows go that cannot become messages"
        )
    if options.dead_letter and not options.mandatory:
        raise OptionError("the option deadLetter needs mandatory=true: else nothing comes back")
    if (options.publisher is None) != (options.version is None):
        missing = "txnAppId" if options.publisher is None else "txnVersion"
        raise OptionError(
            f"the options txnAppId and txnVersion belong together: {missing} is missing"
        )
    if options.url.version != NEWEST:
        raise OptionError(
            f"the option url says AMQP {options.url.version}, and rows are published in {NEWEST}: "
            "begin it with amqp:// or amqps://"
        )
    return options


_TABLE: dict[str, tuple[str, Reader]] = {
    **ACCESS,
    **table_of(SinkOptions),
    "queue": ("queue", read_queue),
}
_READERS = {name.lower(): reader for name, reader in _TABLE.items()}
SINK_NAMES = {name.lower(): name for name in (*_TABLE, *_OF_SPARK)}
"""Every option, by its name in lower case."""
