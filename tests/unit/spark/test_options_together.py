"""Every option wrong once, with its sentence; and options that do not go together."""

from __future__ import annotations

import pytest

from harebell.spark.options.offset_limits import LATEST, POSITION, TIME, OffsetLimit
from harebell.spark.options.source_options import (
    _TABLE,
    OptionError,
    Options,
    for_batch,
    for_stream,
    parse,
)

NOTHING: dict[str, str] = {}
SECRET = "hunter2"


def wrong(**given: str) -> str:
    with pytest.raises(OptionError) as caught:
        parse({"queue": "q", **given}, NOTHING)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def right(**given: str) -> Options:
    return parse({"queue": "q", **given}, NOTHING)


CHOICES = ("queue", "queues", "queuePattern", "superStream", "exchange", "deadLettersOf")
WRONG = {
    "queue": ("", "the option queue must be a queue's name of 1 to 255 bytes"),
    "queues": ("a,,b", "the option queues must be names between commas, such as orders,payments, "),
    "queuePattern": ("a(", "the option queuePattern is no regular expression: missing )"),
    "superStream": ("", "the option superStream must be a queue's name of 1 to 255 bytes"),
    "exchange": ("", "the option exchange must be an exchange's name of 1 to 255 bytes: no queue"),
    "bindingKeys": ("a,a", "the option bindingKeys names key 'a' twice"),
    "deadLettersOf": ("", "the option deadLettersOf must be a queue's name of 1 to 255 bytes"),
    "streamMaxAge": ("0", "the option streamMaxAge must be a time above 0 such as 30s, 500ms or 2"),
    "streamMaxBytes": ("0", "the option streamMaxBytes must be a size above 0 such as 64m, 512k o"),
    "streamExpires": ("0", "the option streamExpires must be a time above 0 such as 30s, 500ms or"),
    "url": ("http://there", "the option url is wrong: an AMQP address begins with amqp:// or "),
    "username": (" ", "the option username is empty"),
    "passwordFile": ("/no/such", "the option passwordFile cannot be read: [Errno 2] No such file"),
    "vhost": ("", "the option vhost is empty"),
    "cacertfile": ("/ca.pem", "the option cacertfile belongs to TLS: the url must begin with amqp"),
    "certfile": ("/me.pem", "the option certfile belongs to TLS: the url must begin with amqps://"),
    "keyfile": ("/me.key", "the option keyfile belongs to TLS: the url must begin with amqps://"),
    "delivery": (
        "twice",
        "the option delivery must be peek, at-most-once, at-least-once or exactly-once, not 'twic",
    ),
    "startingOffsets": ("now", "the option startingOffsets must be earliest, latest, a position, "),
    "startingTimestamp": ("now", "the option startingTimestamp must be milliseconds since 1970 or"),
    "startingOffsetsByTimestamp": ("{", "the option startingOffsetsByTimestamp is no JSON: "),
    "startingOffsetsByTimestampStrategy": (
        "guess",
        "the option startingOffsetsByTimestampStrategy must be error or latest, not 'guess'",
    ),
    "endingOffsets": ("never", "the option endingOffsets must be earliest, latest, a position, a "),
    "endingTimestamp": ("never", "the option endingTimestamp must be milliseconds since 1970 or a"),
    "endingOffsetsByTimestamp": ("7", "the option endingOffsetsByTimestamp must be a JSON object "),
    "maxOffsetsPerTrigger": ("0", "the option maxOffsetsPerTrigger must be a whole number at leas"),
    "maxBytesPerTrigger": (
        "64 parsecs",
        "the option maxBytesPerTrigger must be a size above 0 such as 64m, 512k or 1000000, not '",
    ),
    "minOffsetsPerTrigger": ("0", "the option minOffsetsPerTrigger must be a whole number at leas"),
    "maxTriggerDelay": ("0", "the option maxTriggerDelay must be a time above 0 such as 30s, 500m"),
    "prefetch": ("none", "the option prefetch must be a whole number at least 1, not 'none'"),
    "fetchTimeout": ("0", "the option fetchTimeout must be a time above 0 such as 30s, 500ms or 2"),
    "maxConnections": ("0", "the option maxConnections must be a whole number from 1 to 1000, no"),
    "connectionWait": ("0", "the option connectionWait must be a time above 0 such as 30s, 500ms"),
    "longPollMs": ("-1", "the option longPollMs must be a whole number from 0 to 60000, not '-1'"),
    "rowsPerBatch": ("0", "the option rowsPerBatch must be a whole number from 1 to 65536, not '0"),
    "minPartitions": ("0", "the option minPartitions must be a whole number from 1 to 10000, not "),
    "maxRecordsPerPartition": (
        "0",
        "the option maxRecordsPerPartition must be a whole number at least 1, not '0'",
    ),
    "partitionBy": ("size", "the option partitionBy must be range, queue or key, not 'size'"),
    "orderingKey": ("customer", "the option orderingKey must be routing_key, properties.NAME or"),
    "failOnDataLoss": ("maybe", "the option failOnDataLoss must be true or false, not 'maybe'"),
    "group": ("", "the option group must be a name of 1 to 255 bytes"),
    "groupIdPrefix": (" ", "the option groupIdPrefix must be a name of 1 to 222 bytes, which be"),
    "leaseTimeout": ("never", "the option leaseTimeout must be a time above 0 such as 30s, 500ms "),
    "wireCompression": ("zip", "the option wireCompression must be none or lz4, not 'zip'"),
    "pushdown": ("yes", "the option pushdown must be true or false, not 'yes'"),
    "where": ("colour = 1", "the option where is no condition: the filter is wrong at character 1"),
    "unmatched": ("requeue", "the option unmatched must be discard, not 'requeue'"),
    "tier": (" ", "the option tier is empty"),
    "spoolDir": ("here", "the option spoolDir must be an absolute path that every executor sees, "),
    "columns": ("pulsar", "the option columns must be amqp or kafka, not 'pulsar'"),
    "includeHeaders": ("1", "the option includeHeaders must be true or false, not '1'"),
    "includeProperties": ("1", "the option includeProperties must be true or false, not '1'"),
    "includeHeadersJson": ("1", "the option includeHeadersJson must be true or false, not '1'"),
    "includeRawHeaders": ("1", "the option includeRawHeaders must be true or false, not '1'"),
    "bodyFormat": ("xml", "the option bodyFormat must be binary, text or json, not 'xml'"),
    "schema": (" ", "the option schema is empty"),
    "mode": (
        "strict",
        "the option mode must be PERMISSIVE, DROPMALFORMED or FAILFAST, not 'strict'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_option_is_answered_with_its_sentence(name: str) -> None:
    value, sentence = WRONG[name]
    with pytest.raises(OptionError) as caught:
        parse({name: value} if name in CHOICES else {"queue": "q", name: value}, NOTHING)
    assert str(caught.value).startswith(sentence)


def test_every_option_is_wrong_once() -> None:
    # A password may be anything.
    assert set(WRONG) == set(_TABLE) - {"password"}


def test_a_query_reads_one_queue_or_several_or_those_that_match() -> None:
    assert parse({"queues": "a, b,c"}, NOTHING).queues == ("a", "b", "c")
    assert parse({"queues": '["a,b", "c"]'}, NOTHING).queues == ("a,b", "c")
    assert parse({"queuePattern": "orders-.*"}, NOTHING).pattern == "orders-.*"
    assert right().queues == ("q",)
    assert wrong(queues="a") == "the options queue and queues exclude each other: give one of them"


def test_a_queue_is_not_read_twice() -> None:
    with pytest.raises(OptionError, match="the option queues names queue 'a' twice"):
        parse({"queues": "a,b,a"}, NOTHING)


@pytest.mark.parametrize("value", ["[1]", "[", "[]"])
def test_names_as_json_are_texts(value: str) -> None:
    with pytest.raises(OptionError, match="the option queues"):
        parse({"queues": value}, NOTHING)


def test_a_query_over_an_exchange_has_its_own_stream() -> None:
    options = parse({"exchange": "e", "bindingKeys": "orders.*, audit.#"}, NOTHING)
    assert (options.exchange, options.binding_keys) == ("e", ("orders.*", "audit.#"))
    assert (options.queues, options.stream_max_age, options.stream_expires) == ((), 86400, 86400)
    assert parse({"exchange": "e", "bindingKeys": '["a,b", ""]'}, NOTHING).binding_keys == (
        "a,b",
        "",
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"exchange": "e"}, "the option exchange needs the option bindingKeys: the keys with whi"),
        ({"queue": "q", "bindingKeys": "k"}, "the option bindingKeys belongs to the option excha"),
        ({"queue": "q", "streamMaxAge": "1h"}, "the option streamMaxAge belongs to the option ex"),
        ({"queue": "q", "exchange": "e"}, "the options queue and exchange exclude each other"),
        (
            {"exchange": "e", "bindingKeys": "k", "startingOffsets": "latest"},
            "the options exchange and startingOffsets exclude each other: the query has a stream",
        ),
        (
            {"exchange": "e", "bindingKeys": "k", "delivery": "at-least-once"},
            "the options exchange and delivery=at-least-once exclude each other: the stream of",
        ),
        ({"exchange": "e", "bindingKeys": "[1]"}, "the option bindingKeys must be keys between"),
        ({"exchange": "e", "bindingKeys": "["}, "the option bindingKeys is no JSON array: "),
        ({"exchange": "e", "bindingKeys": "k" * 256}, "the option bindingKeys has a key of more"),
        ({"exchange": "e", "bindingKey": "k"}, "unknown option 'bindingKey': did you mean bindi"),
    ],
)
def test_options_of_an_exchange_are_checked_together(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(given, NOTHING)
    assert str(caught.value).startswith(sentence)


def test_dead_letters_are_not_read_over_plain_amqp() -> None:
    with pytest.raises(OptionError, match="deadLettersOf and delivery=at-least-once exclude"):
        parse({"deadLettersOf": "q", "delivery": "at-least-once"}, NOTHING)
    assert parse({"deadLettersOf": "q"}, NOTHING).discovers


def test_a_batch_read_has_no_exchange() -> None:
    with pytest.raises(OptionError, match=r"exchange belongs to spark\.readStream"):
        for_batch(parse({"exchange": "e", "bindingKeys": "k"}, NOTHING))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"partitionBy": "key"}, "the options partitionBy=key and orderingKey belong together: sa"),
        ({"orderingKey": "routing_key"}, "the options partitionBy=key and orderingKey belong toge"),
        (
            {"orderingKey": "properties.mesage_id"},
            "the option orderingKey names no property, 'mesage_id': did you mean properties.messa",
        ),
        (
            {"partitionBy": "key", "orderingKey": "headers.a", "delivery": "at-least-once"},
            "the options partitionBy=key and delivery=at-least-once exclude each other: over plai",
        ),
        (
            {"partitionBy": "key", "orderingKey": "headers.a", "maxRecordsPerPartition": "5"},
            "the options partitionBy=key and maxRecordsPerPartition exclude each other: a task",
        ),
    ],
)
def test_a_key_is_of_tasks_that_share_keys(given: dict[str, str], sentence: str) -> None:
    assert wrong(**given).startswith(sentence)


def test_a_timestamp_wins_over_offsets_as_with_kafka() -> None:
    options = right(
        startingOffsets="7",
        startingOffsetsByTimestamp='{"q": 5}',
        startingTimestamp="9",
        endingOffsets="7",
        endingOffsetsByTimestamp='{"q": 5}',
    )
    assert options.starting.of("q") == OffsetLimit(TIME, 9_000)
    assert options.ending.of("q") == OffsetLimit(TIME, 5_000)
    assert right(startingOffsets="7").starting.of("q") == OffsetLimit(POSITION, 7)


def test_a_place_of_a_queue_that_is_not_read_is_a_mistake() -> None:
    assert wrong(startingOffsets='{"other": 7}') == (
        "a starting or ending option names queue 'other', which is not read: q"
    )
    options = parse({"queuePattern": ".*", "startingOffsets": '{"other": "latest"}'}, NOTHING)
    assert options.starting.of("other") == OffsetLimit(LATEST)


def test_a_schema_is_for_json() -> None:
    assert wrong(schema="id INT") == (
        "the option schema describes JSON bodies: add bodyFormat=json"
    )
    assert right(schema="id INT", bodyFormat="JSON").body_schema == "id INT"


@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once"])
def test_the_connections_of_tasks_are_not_limited_where_they_have_none(delivery: str) -> None:
    assert right(maxConnections="2").max_connections == 2
    assert wrong(maxConnections="2", delivery=delivery) == (
        f"the options maxConnections and delivery={delivery} exclude each other: over plain AMQP "
        "the driver alone connects to the broker"
    )


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_avro_and_protobuf_are_answered_with_the_way_to_do_it(name: str) -> None:
    assert wrong(bodyFormat=name) == (
        f"the option bodyFormat cannot be {name}: read binary bodies and decode them in the query "
        f"with from_{name}(value, ...) of Spark's package spark-{name}"
    )


@pytest.mark.parametrize(
    ("text", "octets"), [("1000", 1000), ("64m", 2**26), ("2 KB", 2048), ("1g", 2**30)]
)
def test_sizes_have_units(text: str, octets: int) -> None:
    assert right(maxBytesPerTrigger=text).max_bytes_per_trigger == octets


def test_a_streaming_query_has_no_end_and_no_pushdown() -> None:
    with pytest.raises(OptionError, match=r"endingOffsets belongs to spark\.read"):
        for_stream(right(endingOffsets="latest"))
    with pytest.raises(OptionError, match=r"pushdown belongs to spark\.read"):
        for_stream(right(pushdown="true"))
    assert for_stream(right()) == right()


@pytest.mark.parametrize("delivery", ["at-most-once", "at-least-once", "exactly-once"])
def test_a_batch_read_only_peeks(delivery: str) -> None:
    with pytest.raises(OptionError, match=rf"delivery is {delivery}, but spark\.read can only pee"):
        for_batch(right(delivery=delivery))
    assert for_batch(right(delivery="peek")).delivery == "peek"


def test_a_smallest_micro_batch_is_not_above_the_largest() -> None:
    options = right(minOffsetsPerTrigger="50", maxOffsetsPerTrigger="50")
    assert (options.min_offsets_per_trigger, options.max_trigger_delay) == (50, 900)
    assert wrong(minOffsetsPerTrigger="51", maxOffsetsPerTrigger="50") == (
        "the option minOffsetsPerTrigger is 51, which is above maxOffsetsPerTrigger, 50: no "
        "micro-batch could have as many messages"
    )


def test_a_delay_is_of_a_smallest_micro_batch() -> None:
    assert right(minOffsetsPerTrigger="5", maxTriggerDelay="90s").max_trigger_delay == 90
    assert wrong(maxTriggerDelay="90s") == (
        "the option maxTriggerDelay limits how long minOffsetsPerTrigger waits for messages: give "
        "both"
    )


def test_a_batch_read_does_not_wait_for_messages() -> None:
    with pytest.raises(OptionError, match=r"minOffsetsPerTrigger belongs to spark\.readStream"):
        for_batch(right(minOffsetsPerTrigger="5"))


def test_a_lease_group_has_a_name_or_a_prefix() -> None:
    assert right(groupIdPrefix="etl").group_prefix == "etl"
    assert wrong(group="a", groupIdPrefix="etl") == (
        "the options group and groupIdPrefix exclude each other: give one of them"
    )


def test_a_batch_read_has_rows() -> None:
    with pytest.raises(OptionError, match="startingOffsets cannot be latest"):
        for_batch(right(startingOffsets="latest"))
    with pytest.raises(OptionError, match="endingOffsets cannot be earliest"):
        for_batch(right(endingOffsets='{"q": -2}'))


def test_a_condition_is_checked_before_anything_connects() -> None:
    assert right(where="headers.x = 1", unmatched="discard").where == "headers.x = 1"
    assert "ends where a column or a value is missing" in wrong(where="body.total >")
    for column in ("age > 10", "state = 'ready'"):
        assert "which changes while a message waits" in wrong(where=column)


def test_a_condition_does_not_go_with_plain_amqp() -> None:
    for delivery in ("at-least-once", "at-most-once"):
        assert f"does not go with delivery={delivery}" in wrong(
            where="redelivered", delivery=delivery
        )
    assert right(where="redelivered", delivery="peek").where == "redelivered"


def test_unmatched_is_about_messages_that_a_consuming_query_does_not_select() -> None:
    assert wrong(unmatched="discard") == (
        "the option unmatched says what happens to messages that where does not select: give both"
    )
    with pytest.raises(OptionError, match=r"unmatched belongs to spark\.readStream"):
        for_batch(right(where="redelivered", unmatched="discard"))


def test_columns_of_kafka_have_headers_on_request() -> None:
    assert not right(columns="kafka").include_headers
    assert right(columns="kafka", includeHeaders="true").include_headers
    assert right(columns="amqp").include_headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("includeProperties", "true"),
        ("includeHeadersJson", "false"),
        ("includeRawHeaders", "true"),
        ("bodyFormat", "text"),
        ("mode", "FAILFAST"),
    ],
)
def test_columns_of_kafka_exclude_options_on_other_columns(name: str, value: str) -> None:
    assert wrong(columns="kafka", **{name: value}).startswith(
        f"the options columns=kafka and {name} exclude each other"
    )


def test_a_super_stream_is_read_with_a_task_for_each_partition() -> None:
    options = parse({"superStream": "a.b"}, NOTHING)
    assert (options.pattern, options.partition_by) == (r"a\.b-[0-9]+", "queue")
    assert parse({"superStream": "s", "partitionBy": "range"}, NOTHING).partition_by == "range"
    assert wrong(superStream="s").startswith("the options queue and superStream exclude each other")
    with pytest.raises(OptionError, match="superStream and delivery=at-least-once exclude"):
        parse({"superStream": "s", "delivery": "at-least-once"}, NOTHING)


def test_a_limit_of_a_queue_that_a_pattern_or_super_stream_does_not_read_is_refused() -> None:
    """Or reading would begin elsewhere than the user says."""
    for given, where in (
        ({"superStream": "readings"}, "the partitions of the super stream are readings-0, "),
        ({"queuePattern": "readings-."}, "queuePattern is readings-."),
    ):
        with pytest.raises(OptionError, match=where):
            parse({**given, "startingOffsets": '{"readings": 5}'}, NOTHING)
        right = parse({**given, "startingOffsets": '{"readings-0": 5}'}, NOTHING)
        assert right.starting.of("readings-0") == OffsetLimit(POSITION, 5)


def test_options_of_code_for_kafka_are_named_with_their_equivalents_here() -> None:
    assert "is queue, queues or superStream here" in wrong(subscribe="orders")
    assert "is url here" in wrong(**{"kafka.bootstrap.servers": "there:9092"})
    assert "it is for Kafka's client" in wrong(**{"kafka.security.protocol": "SSL"})
    text = wrong(startingOffsets='{"q": {"0": 17}}')
    assert 'an offset stands beside the name of a queue or stream, as in {"q": 17}, and' in text
    assert text.endswith('partitions of a super stream are streams, as in {"q-0": 17}')


def test_an_option_that_would_have_no_effect_is_refused() -> None:
    assert "add bodyFormat=json" in wrong(mode="FAILFAST")
    assert "exclude each other" in wrong(where="true", unmatched="discard", delivery="peek")
    with pytest.raises(OptionError, match="an empty key between commas"):
        parse({"exchange": "e", "bindingKeys": "a,,b"}, NOTHING)
    assert parse({"exchange": "e", "bindingKeys": ""}, NOTHING).binding_keys == ("",)
