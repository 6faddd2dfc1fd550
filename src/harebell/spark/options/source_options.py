"""Parse the options of the format `harebell` for reading: names, defaults and checks.

Names are Spark's, so their case does not matter, and those of its Kafka source where the
meaning is the same. An error names the invalid value and the valid ones, before any connection
is opened. Passwords are never printed (`access`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harebell.base import limits as base_limits
from harebell.base.limits import NAME_BYTES
from harebell.base.names import nearest
from harebell.client.url import URL
from harebell.model.filter.columns import changes
from harebell.model.filter.condition import compile_filter
from harebell.model.filter.errors import FilterError
from harebell.spark import limits
from harebell.spark.options import offset_limits as bounds
from harebell.spark.options.access import ACCESS, read_options
from harebell.spark.options.offset_limits import EARLIEST, LATEST, NO_LIMITS, OffsetLimits
from harebell.spark.options.values import (
    OptionError,
    Reader,
    choice,
    option,
    problems,
    read_directory,
    read_flag,
    read_group,
    read_keys,
    read_queue,
    read_queues,
    read_seconds,
    read_size,
    read_text,
    table_of,
    unknown,
    whole,
)
from harebell.wire.arrow.columns import FIELDS as PROPERTY_FIELDS

__all__ = ["OptionError", "Options", "parse"]

PEEK, AT_MOST_ONCE, AT_LEAST_ONCE, EXACTLY_ONCE = (
    "peek",
    "at-most-once",
    "at-least-once",
    "exactly-once",
)
GROUP_PREFIX = "spark"
DISCARD = "discard"
BINARY, TEXT, JSON = "binary", "text", "json"
AMQP, KAFKA = "amqp", "kafka"
BY_KEY = "key"


def _read_pattern(name: str, value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise OptionError(f"the option {name} is no regular expression: {error}") from None
    return read_text(name, value)


def _read_key(name: str, value: str) -> str:
    column, dot, field = value.partition(".")
    if value == "routing_key" or (column == "headers" and field):
        return value
    if column == "properties" and dot:
        if field in PROPERTY_FIELDS:
            return value
        near = nearest(field.lower(), PROPERTY_FIELDS)
        mend = f"did you mean properties.{near}?" if near else f"one of {_listed(PROPERTY_FIELDS)}"
        raise OptionError(f"the option {name} names no property, {field!r}: {mend}")
    raise OptionError(
        f"the option {name} must be routing_key, properties.NAME or headers.NAME, not {value!r}"
    )


def _read_format(name: str, value: str) -> str:
    known = value.strip().lower()
    if known in _PACKAGES:
        raise OptionError(
            f"the option {name} cannot be {known}: read binary bodies and decode them in the "
            f"query with from_{known}(value, ...) of Spark's package spark-{known}"
        )
    return choice(BINARY, TEXT, JSON)(name, value)


def _read_prefix(name: str, value: str) -> str:
    if not value.strip() or len(value.encode()) > _PREFIX_BYTES:
        raise OptionError(
            f"the option {name} must be a name of 1 to {_PREFIX_BYTES} bytes, which begins the "
            "names of lease groups and connections"
        )
    return value


def _read_condition(name: str, value: str) -> str:
    try:
        condition = compile_filter(value)
    except FilterError as error:
        raise OptionError(f"the option {name} is no condition: {error}") from None
    column = changes(condition.columns)
    if column:
        raise OptionError(
            f"the option {name} cannot use {column}, which changes while a message waits: a "
            "task that reads again would get other rows"
        )
    return value


def _read_tier(name: str, value: str) -> str:
    place = read_text(name, value).strip()
    # A path means the same on executors.
    return place if "://" in place else str(Path(place).expanduser().resolve())


def _read_exchange(name: str, value: str) -> str:
    if not value or len(value.encode()) > NAME_BYTES:
        raise OptionError(
            f"the option {name} must be an exchange's name of 1 to {NAME_BYTES} bytes: no queue "
            "can be bound to the default exchange"
        )
    return value


_PACKAGES = ("avro", "protobuf")
# A group's name ends with a UUID in hexadecimal digits.
_PREFIX_BYTES = NAME_BYTES - len("-") - 32


def _read_lease(name: str, value: str) -> float:
    seconds = read_seconds(name, value)
    max_seconds = base_limits.LEASE_TIMEOUT_MAX_MS / 1000
    if seconds > max_seconds:
        raise OptionError(
            f"the option {name} must be at most {max_seconds / 3600:g}h, for which a broker keeps "
            f"a lease, not {value!r}"
        )
    return seconds


@dataclass(frozen=True)
class Options:
    """The parsed options of a source.

    Args:
        queue: the queue to read; with several queues, the current one.
        url: address of the broker, with user and password.
        queues: all of them.
        pattern: a regular expression for their names.
        super_stream: a super stream, whose partitions the pattern matches.
        exchange: an exchange, whose messages a stream of the query's own collects.
        binding_keys: with which that stream is bound.
        dead_letters_of: a queue, whose dead-letter queues are read.
        stream_max_age: seconds after which that stream lets messages go.
        stream_max_bytes: bytes above which it does; None for no limit.
        stream_expires: seconds without a reader after which the broker deletes that stream.
        delivery: the delivery guarantee; None is the best that the broker supports.
        starting: where a new query begins.
        ending: where a batch read ends.
        strategy: what a starting time after the last message means: "error" or "latest".
        max_offsets_per_trigger: most messages in one micro-batch.
        max_bytes_per_trigger: bytes of messages after which a micro-batch is full.
        min_offsets_per_trigger: messages that a micro-batch waits for; 0 for any.
        max_trigger_delay: seconds that it waits for them at most.
        prefetch: most unacknowledged messages; None is as many as in a micro-batch.
        fetch_timeout: seconds without an answer after which the query fails.
        max_connections: most connections of the tasks of an executor at a time; None for no limit.
        connection_wait: seconds that a task waits for a connection where a limit allows no more.
        long_poll_ms: milliseconds that an idle query waits for a message.
        rows_per_batch: rows of an Arrow record batch.
        min_partitions: partitions of a large micro-batch; None is one per core.
        max_records_per_partition: most messages that one task reads.
        partition_by: "range", "queue" for one task per queue, or "key" for a share of the keys.
        ordering_key: what the keys are: routing_key, properties.NAME or headers.NAME.
        fail_on_data_loss: whether a query fails when expected messages are missing.
        group: name of the lease group; None creates one for a new query.
        group_prefix: what the name of a created lease group, and of connections, begins with.
        lease_timeout: seconds that a lease is kept after its query ends.
        compression: of record batches on the wire, "none" or "lz4".
        pushdown: whether a batch read pushes filters down to the broker.
        where: a condition of the broker's filter language; None for all messages.
        unmatched: what happens to messages of leased queues that it does not select.
        tier: where the tier of the stream is, which is read with it; None for no tier.
        spool_dir: directory that stores messages between a plain AMQP queue and Spark.
        columns: names and types of the columns: "amqp", or "kafka" for those of Kafka's source.
        include_headers: whether to add the column `headers`.
        include_properties: whether to add the column `properties`.
        include_headers_json: whether to add the column `headers_json`.
        include_raw_headers: whether to add the column `headers_raw`.
        body_format: type of `value`: binary, text or json.
        body_schema: schema of JSON bodies, as Spark's DDL.
        mode: how invalid bodies are handled.
    """

    queue: str
    url: URL = field(repr=False)
    queues: tuple[str, ...] = option(read_queues, ())
    pattern: str | None = option(_read_pattern, None, "queuePattern")
    super_stream: str | None = option(read_queue)
    exchange: str | None = option(_read_exchange)
    binding_keys: tuple[str, ...] = option(read_keys, ())
    dead_letters_of: str | None = option(read_queue)
    stream_max_age: float = option(read_seconds, limits.SPARK_STREAM_SECONDS)
    stream_max_bytes: int | None = option(read_size)
    stream_expires: float = option(read_seconds, limits.SPARK_STREAM_SECONDS)
    delivery: str | None = option(choice(PEEK, AT_MOST_ONCE, AT_LEAST_ONCE, EXACTLY_ONCE))
    starting: OffsetLimits = option(bounds.read_offset_limits, NO_LIMITS, "startingOffsets")
    ending: OffsetLimits = option(bounds.read_offset_limits, NO_LIMITS, "endingOffsets")
    strategy: str = option(choice("error", "latest"), "error", "startingOffsetsByTimestampStrategy")
    max_offsets_per_trigger: int = option(whole(1), limits.SPARK_ROWS_PER_TRIGGER)
    max_bytes_per_trigger: int | None = option(read_size)
    min_offsets_per_trigger: int = option(whole(1), 0)
    max_trigger_delay: float = option(read_seconds, limits.SPARK_TRIGGER_DELAY_SECONDS)
    prefetch: int | None = option(whole(1))
    fetch_timeout: float = option(read_seconds, limits.SPARK_FETCH_TIMEOUT_SECONDS)
    max_connections: int | None = option(whole(1, limits.SPARK_CONNECTIONS_MAX))
    connection_wait: float = option(read_seconds, limits.SPARK_CONNECTION_WAIT_SECONDS)
    long_poll_ms: int = option(whole(0, 60_000), int(limits.SPARK_LONG_POLL_SECONDS * 1000))
    rows_per_batch: int = option(
        whole(1, limits.SPARK_ROWS_PER_BATCH_MAX), limits.SPARK_ROWS_PER_BATCH
    )
    min_partitions: int | None = option(whole(1, 10_000))
    max_records_per_partition: int | None = option(whole(1))
    partition_by: str = option(choice("range", "queue", "key"), "range")
    ordering_key: str | None = option(_read_key)
    fail_on_data_loss: bool = option(read_flag, True)
    group: str | None = option(read_group)
    group_prefix: str = option(_read_prefix, GROUP_PREFIX, "groupIdPrefix")
    lease_timeout: float = option(_read_lease, limits.SPARK_LEASE_SECONDS)
    compression: str = option(choice("none", "lz4"), "none", "wireCompression")
    pushdown: bool = option(read_flag, False)
    where: str | None = option(_read_condition)
    unmatched: str | None = option(choice(DISCARD))
    tier: str | None = option(_read_tier, shown=False)
    spool_dir: Path | None = option(read_directory)
    columns: str = option(choice(AMQP, KAFKA), AMQP)
    include_headers: bool = option(read_flag, True)
    include_properties: bool = option(read_flag, True)
    include_headers_json: bool = option(read_flag, False)
    include_raw_headers: bool = option(read_flag, False)
    body_format: str = option(_read_format, BINARY)
    body_schema: str | None = option(read_text, None, "schema")
    mode: str = option(choice("PERMISSIVE", "DROPMALFORMED", "FAILFAST"), "PERMISSIVE")

    @property
    def discovers(self) -> bool:
        """True if the broker says which queues are read, and may say others later."""
        return self.pattern is not None or self.dead_letters_of is not None

    @property
    def window(self) -> int:
        """Maximum number of unacknowledged messages."""
        return self.prefetch or self.max_offsets_per_trigger

    @property
    def partitions(self) -> int:
        """Number of partitions of a large micro-batch."""
        return self.min_partitions or os.cpu_count() or 1

    @property
    def least_rows(self) -> int:
        """Minimum number of rows of a partition, unless the option sets it."""
        return limits.SPARK_ROWS_PER_PARTITION if self.min_partitions is None else 1

    def about(self, queue: str) -> Options:
        """Return the same options for one of the queues."""
        return replace(self, queue=queue)


def parse(given: Mapping[str, str], environment: Mapping[str, str] | None = None) -> Options:
    """Read the options.

    Args:
        given: the options as Spark hands them over.
        environment: used where the option `url` is not given.

    Raises:
        OptionError: an option is wrong; the text says how to correct it.
    """
    values = {name.lower(): value for name, value in given.items()}
    check_names(given)
    _one_of_the_queues(values)
    read = read_options(values, _READERS, _NAMES, environment)
    for end in ("starting", "ending"):
        read[end] = _places(read, end)
    _check_exchange(values)
    if "super_stream" in read:
        # The partitions are those that exist: one that is added joins the query as any queue does.
        read["pattern"] = re.escape(read["super_stream"]) + "-[0-9]+"
        read.setdefault("partition_by", "queue")
    queues = read.get("queues") or ((read["queue"],) if "queue" in read else ())
    read["queues"] = queues
    read["queue"] = queues[0] if queues else ""
    if read.get("columns") == KAFKA:
        _check_kafka(values)
        # The default of Kafka's source.
        read.setdefault("include_headers", False)
    options = Options(**read)
    _check(options)
    _check_trigger(options, values)
    _check_condition(options)
    _check_key(options, values)
    _check_tier(values)
    if "group" in values and "groupidprefix" in values:
        raise OptionError(
            "the options group and groupIdPrefix exclude each other: give one of them"
        )
    return options


def problems_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with each option by itself, by its name as it is given."""
    return problems(given, _READERS, _NAMES)


def check_names(given: Iterable[str]) -> None:
    """Check that all options exist.

    Raises:
        OptionError: an option does not exist; the text names the most similar one.
    """
    for name in given:
        if name.lower() not in _READERS:
            raise OptionError(unknown(name, _NAMES))


def for_stream(options: Options) -> Options:
    """Check the options of a streaming query.

    Raises:
        OptionError: an option is only valid for a batch read.
    """
    if options.ending.all:
        raise OptionError(
            "the option endingOffsets belongs to spark.read: a streaming query has no end, and "
            ".trigger(availableNow=True) ends at what is there"
        )
    if options.pushdown:
        raise OptionError(
            "the option pushdown belongs to spark.read: Spark hands the filters of a streaming "
            "query to no source"
        )
    return options


def for_batch(options: Options) -> Options:
    """Check the options of a batch read.

    Raises:
        OptionError: an option is only valid for a streaming query.
    """
    if options.delivery not in (None, PEEK):
        raise OptionError(
            f"the option delivery is {options.delivery}, but spark.read can only peek: it has no "
            "moment at which it could acknowledge; use spark.readStream with "
            ".trigger(availableNow=True), which takes what is there and ends"
        )
    if options.exchange is not None:
        raise OptionError(
            "the option exchange belongs to spark.readStream: an exchange has no messages that a "
            "batch read could find; read a queue that is bound to it"
        )
    if options.unmatched is not None:
        raise OptionError(
            "the option unmatched belongs to spark.readStream: a batch read consumes nothing"
        )
    if options.min_offsets_per_trigger:
        raise OptionError(
            "the option minOffsetsPerTrigger belongs to spark.readStream: a batch read does not "
            "wait for messages"
        )
    if any(place.kind == LATEST for place in options.starting.all):
        raise OptionError("the option startingOffsets cannot be latest in spark.read: no rows")
    if any(place.kind == EARLIEST for place in options.ending.all):
        raise OptionError("the option endingOffsets cannot be earliest: there would be no rows")
    return options


def _one_of_the_queues(values: Mapping[str, str]) -> None:
    choices = ("queue", "queues", "queuepattern", "superstream", "exchange", "deadlettersof")
    given = [_NAMES[name] for name in choices if name in values]
    if not given:
        raise OptionError(
            'the option queue is missing: say which queue to read, .option("queue", "orders"), or '
            "give queues, queuePattern, superStream, exchange or deadLettersOf"
        )
    if len(given) > 1:
        raise OptionError(f"the options {' and '.join(given)} exclude each other: give one of them")


def _check_exchange(values: Mapping[str, str]) -> None:
    """Check the options of a query over an exchange."""
    if "exchange" not in values:
        for name in _OF_EXCHANGE:
            if name in values:
                raise OptionError(
                    f"the option {_NAMES[name]} belongs to the option exchange, whose messages a "
                    "stream of the query's own collects: give both"
                )
        return
    if "bindingkeys" not in values:
        raise OptionError(
            "the option exchange needs the option bindingKeys: the keys with which the stream of "
            "the query is bound, such as orders.# for a topic exchange"
        )
    for name in _NOT_OF_EXCHANGE:
        if name in values:
            raise OptionError(
                f"the options exchange and {_NAMES[name]} exclude each other: the query has a "
                "stream of its own, which begins with the query"
            )


def _check(options: Options) -> None:
    """Check options that depend on each other."""
    if options.dead_letters_of is not None and options.delivery in (AT_MOST_ONCE, AT_LEAST_ONCE):
        raise OptionError(
            f"the options deadLettersOf and delivery={options.delivery} exclude each other: plain "
            "AMQP does not say where dead letters go, so name the queues with the option queues"
        )
    if options.exchange is not None and options.delivery in (AT_MOST_ONCE, AT_LEAST_ONCE):
        raise OptionError(
            f"the options exchange and delivery={options.delivery} exclude each other: the stream "
            "of the query is read exactly once"
        )
    if options.super_stream is not None and options.delivery not in (None, EXACTLY_ONCE, PEEK):
        raise OptionError(
            f"the options superStream and delivery={options.delivery} exclude each other: the "
            "partitions of a super stream are streams, which are read exactly once"
        )
    if options.max_connections is not None and options.delivery in (AT_MOST_ONCE, AT_LEAST_ONCE):
        raise OptionError(
            f"the options maxConnections and delivery={options.delivery} exclude each other: over "
            "plain AMQP the driver alone connects to the broker"
        )
    if options.body_format != JSON:
        if options.body_schema is not None:
            raise OptionError("the option schema describes JSON bodies: add bodyFormat=json")
        if options.mode != "PERMISSIVE":
            raise OptionError(
                f"the option mode is {options.mode}, which is about bodies that are not JSON: add "
                "bodyFormat=json and a schema"
            )
    for end in (options.starting, options.ending):
        if options.pattern is not None:
            end.check_named(re.compile(options.pattern).fullmatch, _pattern_of(options))
        elif not options.discovers and options.exchange is None:
            end.check_named(options.queues.__contains__, _listed(options.queues))


def _pattern_of(options: Options) -> str:
    """The queues that a pattern or a super stream reads, for an error."""
    if options.super_stream is not None:
        name = options.super_stream
        return f"the partitions of the super stream are {name}-0, {name}-1 and so on"
    return f"queuePattern is {options.pattern}"


def _check_kafka(values: Mapping[str, str]) -> None:
    """Check that no option is about columns that Kafka's source does not have."""
    others = (
        *("includeproperties", "includeheadersjson", "includerawheaders"),
        *("bodyformat", "schema", "mode"),
    )
    for name in others:
        if name in values:
            raise OptionError(
                f"the options columns=kafka and {_NAMES[name]} exclude each other: the columns of "
                "Kafka's source are key, value, topic, partition, offset, timestamp, timestampType "
                "and headers, and value is binary"
            )


def _check_condition(options: Options) -> None:
    """Check what happens to messages that the condition does not select."""
    if options.where is None:
        if options.unmatched is not None:
            raise OptionError(
                "the option unmatched says what happens to messages that where does not select: "
                "give both"
            )
        return
    if options.unmatched is not None and options.delivery == PEEK:
        raise OptionError(
            "the options unmatched and delivery=peek exclude each other: peek leaves all messages "
            "in the queue"
        )
    if options.delivery in (AT_MOST_ONCE, AT_LEAST_ONCE):
        raise OptionError(
            f"the option where does not go with delivery={options.delivery}, which consumes over "
            "plain AMQP: filter in the query, or use exactly-once or peek"
        )


def _check_trigger(options: Options, values: Mapping[str, str]) -> None:
    """Check the smallest micro-batch."""
    if options.min_offsets_per_trigger > options.max_offsets_per_trigger:
        raise OptionError(
            f"the option minOffsetsPerTrigger is {options.min_offsets_per_trigger}, which is above "
            f"maxOffsetsPerTrigger, {options.max_offsets_per_trigger}: no micro-batch could have "
            "as many messages"
        )
    if "maxtriggerdelay" in values and "minoffsetspertrigger" not in values:
        raise OptionError(
            "the option maxTriggerDelay limits how long minOffsetsPerTrigger waits for messages: "
            "give both"
        )


def _check_key(options: Options, values: Mapping[str, str]) -> None:
    """Check how tasks share the keys of a micro-batch."""
    if (options.partition_by == BY_KEY) != (options.ordering_key is not None):
        raise OptionError(
            "the options partitionBy=key and orderingKey belong together: say what the key is, "
            "such as routing_key, properties.correlation_id or headers.customer"
        )
    if options.partition_by != BY_KEY:
        return
    if options.delivery in (AT_MOST_ONCE, AT_LEAST_ONCE):
        raise OptionError(
            f"the options partitionBy=key and delivery={options.delivery} exclude each other: over "
            "plain AMQP a micro-batch is not divided by keys"
        )
    if "maxrecordsperpartition" in values:
        raise OptionError(
            "the options partitionBy=key and maxRecordsPerPartition exclude each other: a task has "
            "all messages of its keys"
        )


def _check_tier(values: Mapping[str, str]) -> None:
    """Check that no option is about what a tier does not have."""
    if "tier" not in values:
        return
    if "queue" not in values:
        raise OptionError(
            "the option tier needs the option queue: a tier belongs to one stream, and other "
            "options read several, or a new one"
        )
    for name, why in _NOT_OF_TIER.items():
        # These values ask for nothing that a tier does not have.
        if name in values and values[name].strip().lower() not in ("false", EXACTLY_ONCE, PEEK):
            raise OptionError(f"the options tier and {_NAMES[name]} exclude each other: {why}")


def _places(read: dict[str, Any], end: str) -> OffsetLimits:
    """Combine three options into one limit, with the precedence of the Kafka source."""
    offsets = read.pop(end, NO_LIMITS)
    times = read.pop(f"{end}_times", None)
    time = read.pop(f"{end}_time", None)
    # A dataclass is always true, so the first one that is given wins.
    offset_limits: OffsetLimits = time or times or offsets
    return offset_limits


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


_TABLE: dict[str, tuple[str, Reader]] = {
    **ACCESS,
    **table_of(Options),
    "queue": ("queue", read_queue),
    "startingTimestamp": ("starting_time", bounds.read_time),
    "startingOffsetsByTimestamp": ("starting_times", bounds.read_times),
    "endingTimestamp": ("ending_time", bounds.read_time),
    "endingOffsetsByTimestamp": ("ending_times", bounds.read_times),
}
_OF_EXCHANGE = ("bindingkeys", "streammaxage", "streammaxbytes", "streamexpires")
_NOT_OF_TIER = {
    "where": "the broker tests the condition, and only of its own messages; filter in the query",
    "includeheadersjson": "a tier has the columns headers and headers_raw only",
    "delivery": "over plain AMQP a stream is not read by its offsets; leave it out",
}
_NOT_OF_EXCHANGE = (
    *("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp"),
    *("leasetimeout", "unmatched"),
)
_READERS = {name.lower(): reader for name, reader in _TABLE.items()}
_NAMES = {name.lower(): name for name in _TABLE}
SOURCE_NAMES = _NAMES
"""Every option, by its name in lower case."""
