"""The sink's options: every one wrong once, with the sentence that it gets."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.spark.options.sink_options import _TABLE, parse_sink
from harebell.spark.options.values import OptionError

NOWHERE: dict[str, str] = {}


def test_without_options_rows_are_mandatory_persistent_and_go_to_the_local_broker() -> None:
    options = parse_sink({}, NOWHERE)
    assert options.url.address == "127.0.0.1:5672"
    assert (options.exchange, options.routing_key, options.delivery) == (None, None, None)
    assert options.mandatory
    assert options.delivery_mode == 2
    assert parse_sink({"persistent": "false"}, NOWHERE).delivery_mode == 1


def test_names_are_taken_whatever_their_case() -> None:
    options = parse_sink({"ROUTINGKEY": "k", "exchange": "x", "deadletter": "dlx"}, NOWHERE)
    assert (options.exchange, options.routing_key, options.dead_letter) == ("x", "k", "dlx")


def test_a_queue_is_short_for_the_default_exchange_and_its_name() -> None:
    options = parse_sink({"queue": "orders"}, NOWHERE)
    assert (options.exchange, options.routing_key) == ("", "orders")


def test_further_arguments_of_spark_are_no_mistake() -> None:
    assert parse_sink({"checkpointLocation": "/tmp/c", "queue": "q"}, NOWHERE).exchange == ""


def test_the_address_comes_from_the_environment_and_is_never_shown() -> None:
    options = parse_sink({}, {"HAREBELL_URL": "amqp://alice:hunter2@far:5673"})
    assert options.url.address == "far:5673"
    assert "hunter2" not in repr(options)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "http://h"}, "the option url is wrong: "),
    ({"username": " "}, "the option username is empty"),
    ({"passwordFile": "/no/such"}, "the option passwordFile cannot be read: [Errno 2] No such"),
    ({"password": "a", "passwordFile": "/b"}, "the options password and passwordFile exclude e"),
    ({"vhost": ""}, "the option vhost is empty"),
    ({"cacertfile": "/ca"}, "the option cacertfile belongs to TLS: the url must begin with am"),
    ({"certfile": "/me"}, "the option certfile belongs to TLS: the url must begin with amqps"),
    ({"keyfile": "/me"}, "the option keyfile belongs to TLS: the url must begin with amqps://"),
    (
        {"url": "amqp+0-10://h"},
        "the option url says AMQP 0-10, and rows are published in 0-9-1",
    ),
    ({"exchange": "x" * 256}, "the option exchange must have at most 255 bytes"),
    ({"routingKey": "ü" * 128}, "the option routingKey must have at most 255 bytes"),
    ({"queue": ""}, "the option queue must be a queue's name of 1 to 255 bytes"),
    ({"queue": "q", "exchange": "x"}, "the options queue and exchange exclude each other"),
    ({"queue": "q", "routingKey": "k"}, "the options queue and routingKey exclude each other"),
    ({"superStream": ""}, "the option superStream must be a queue's name of 1 to 255 bytes"),
    ({"superStream": "s", "queue": "q"}, "the options superStream and exchange or queue exclude"),
    ({"superStream": "s", "routingKey": "k"}, "the options superStream and routingKey exclude ea"),
    ({"delivery": "twice"}, "the option delivery must be exactly-once, publishing-id or at-l"),
    ({"mandatory": "yes"}, "the option mandatory must be true or false, not 'yes'"),
    ({"deadLetter": " "}, "the option deadLetter is empty"),
    ({"deadLetter": "x" * 256}, "the option deadLetter must have at most 255 bytes"),
    ({"badRows": "keep"}, "the option badRows must be fail, drop or dead-letter"),
    ({"deadLetter": "d", "mandatory": "false"}, "the option deadLetter needs mandatory=true"),
    ({"persistent": "2"}, "the option persistent must be true or false, not '2'"),
    ({"confirmTimeout": "0"}, "the option confirmTimeout must be a time above 0 such as 30s"),
    (
        {"reconnectTimeout": "soon"},
        "the option reconnectTimeout must be a time such as 30s, 500ms or 2m, or 0, not 'soon'",
    ),
    ({"connectionWait": "0"}, "the option connectionWait must be a time above 0 such as 30s, "),
    ({"maxInFlight": "0"}, "the option maxInFlight must be a whole number from 1 to 1000000"),
    ({"ignoreUnknownColumns": ""}, "the option ignoreUnknownColumns must be true or false"),
    ({"txnAppId": ""}, "the option txnAppId is empty"),
    ({"txnVersion": "-1", "txnAppId": "a"}, "the option txnVersion must be a whole number fr"),
    ({"txnAppId": "a"}, "the options txnAppId and txnVersion belong together: txnVersion is m"),
    ({"txnVersion": "1"}, "the options txnAppId and txnVersion belong together: txnAppId is m"),
    ({"path": "/tmp/x"}, "messages have no path: say where to by the options exchange and rou"),
    ({"exchnage": "x"}, "unknown option 'exchnage': did you mean exchange?"),
    ({"zzz": "x"}, "unknown option 'zzz': the options are "),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG)
def test_a_wrong_option_is_named_with_its_mend(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_sink(given, NOWHERE)
    assert str(caught.value).startswith(sentence)


def test_every_option_is_wrong_once() -> None:
    # A password may be anything.
    named = {name for given, _ in WRONG for name in given}
    assert set(_TABLE) <= named


def test_a_lost_connection_may_be_for_ever() -> None:
    assert parse_sink({"reconnectTimeout": "0"}, NOWHERE).reconnect_timeout == 0
    assert parse_sink({"reconnectTimeout": "2m"}, NOWHERE).reconnect_timeout == 120


def test_a_wrong_address_does_not_show_its_password() -> None:
    with pytest.raises(OptionError) as caught:
        parse_sink({"url": "amqp://alice:hunter2@h:99999999"}, NOWHERE)
    assert "hunter2" not in str(caught.value)
