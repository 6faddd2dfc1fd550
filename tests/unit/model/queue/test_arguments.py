"""Queue arguments: which kind knows which, what values they take, and the words of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.model.queue.arguments import (
    check_consumer_arguments,
    check_queue_arguments,
    check_queue_properties,
    ignored_arguments,
    queue_type,
)

THING = "queue 'q' in vhost '/'"
QUORUM = {"x-queue-type": "quorum"}
STREAM = {"x-queue-type": "stream"}


def refusal(arguments: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as refused:
        check_queue_arguments(THING, arguments)
    assert refused.value.kind is ErrorKind.PRECONDITION_FAILED
    return refused.value.text


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-queue-type": "classic"},
        {"x-unheard-of": 1},
        {"x-max-priority": 0, "x-message-ttl": 0, "x-expires": 1, "x-max-length": 0},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k" * 255},
        {"x-overflow": "reject-publish-dlx", "x-queue-mode": "lazy", "x-queue-version": 2},
        {**QUORUM, "x-delivery-limit": -1, "x-dead-letter-strategy": "at-least-once"},
        {**QUORUM, "x-single-active-consumer": True, "x-quorum-initial-group-size": 3},
        {**STREAM, "x-max-age": "7D", "x-max-length-bytes": 5, "x-stream-filter-size-bytes": 16},
        {**STREAM, "x-stream-max-segment-size-bytes": 3_000_000_000},
        {**STREAM, "x-stream-expires": 60_000},
        {**STREAM, "x-queue-leader-locator": "balanced", "x-initial-cluster-size": 1},
    ],
)
def test_known_and_harmless_arguments_pass(arguments: dict[str, Any]) -> None:
    check_queue_arguments(THING, arguments)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"x-queue-type": "ring"}, "\"unsupported queue type 'ring'\""),
        ({"x-queue-type": 5}, "{unacceptable_type,signedint}"),
        ({"x-message-ttl": -1}, "{value_negative,-1}"),
        ({"x-message-ttl": 315_360_000_001}, "{value_too_large,315360000001}"),
        ({"x-message-ttl": "60000"}, '"expected integer, got longstr"'),
        ({"x-message-ttl": True}, '"expected integer, got bool"'),
        ({"x-expires": 0}, "{value_zero,0}"),
        ({"x-max-length": -5}, "{value_negative,-5}"),
        ({"x-group-key": ""}, "empty_name"),
        ({"x-group-key": 1}, "{unacceptable_type,signedint}"),
        ({"x-overflow": "drop"}, "invalid_overflow"),
        ({"x-overflow": 1}, "{unacceptable_type,signedint}"),
        ({"x-dead-letter-routing-key": "k"}, "routing_key_but_no_dlx_defined"),
        (
            {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "\u00e9" * 128},
            '"a routing key has at most 255 bytes: shorten it"',
        ),
        ({"x-max-priority": 256}, "{max_value_exceeded,256}"),
        ({"x-single-active-consumer": "yes"}, "{unacceptable_type,longstr}"),
        ({"x-queue-mode": "lzy"}, "\"unsupported queue mode 'lzy'\""),
        ({"x-queue-version": 3}, "\"unsupported queue version '3'\""),
        ({"x-queue-version": "2"}, '"expected integer, got longstr"'),
        ({**QUORUM, "x-dead-letter-strategy": "twice"}, "invalid_dlx_strategy"),
        ({**QUORUM, "x-queue-leader-locator": "moon"}, "invalid_queue_locator_arg"),
        ({**QUORUM, "x-quorum-initial-group-size": 0}, "{value_zero,0}"),
        ({**STREAM, "x-max-age": "7 days"}, "invalid_max_age"),
        ({**STREAM, "x-max-age": "0s"}, "invalid_max_age"),
        ({**STREAM, "x-tier": ""}, "invalid_tier"),
        ({**STREAM, "x-tier": 5}, "{unacceptable_type,signedint}"),
        ({**STREAM, "x-max-age": 7}, "{unacceptable_type,signedint}"),
    ],
)
def test_values_that_mean_nothing_are_refused_in_the_known_words(
    arguments: dict[str, Any], problem: str
) -> None:
    name = list(arguments)[-1]
    assert refusal(arguments) == f"invalid arg '{name}' for {THING}: {problem}"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"x-dead-letter-exchange": 5},
            f"invalid type 'signedint' for arg 'x-dead-letter-exchange' in {THING}",
        ),
        (
            {**STREAM, "x-max-length": 5, "x-dead-letter-exchange": True},
            f"invalid type 'bool' for arg 'x-dead-letter-exchange' in {THING}",
        ),
        (
            {**STREAM, "x-stream-max-segment-size-bytes": 3_000_000_001},
            "Exceeded max value for x-stream-max-segment-size-bytes",
        ),
        (
            {**STREAM, "x-stream-filter-size-bytes": 15},
            "Invalid value for x-stream-filter-size-bytes",
        ),
    ],
)
def test_some_refusals_have_words_of_their_own(arguments: dict[str, Any], text: str) -> None:
    assert refusal(arguments) == text


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("quorum", "x-max-priority", 5),
        ("quorum", "x-queue-mode", "lazy"),
        ("quorum", "x-max-age", "1h"),
        ("stream", "x-max-length", 5),
        ("stream", "x-message-ttl", 5),
        ("stream", "x-dead-letter-exchange", ""),
        ("stream", "x-single-active-consumer", True),
        ("classic", "x-delivery-limit", 5),
        ("classic", "x-stream-max-segment-size-bytes", 5),
    ],
)
def test_an_argument_of_another_kind_is_refused(kind: str, name: str, value: Any) -> None:
    assert refusal({"x-queue-type": kind, name: value}) == (
        f"invalid arg '{name}' for {THING} of queue type rabbit_{kind}_queue"
    )


@pytest.mark.parametrize("arguments", [QUORUM, STREAM])
@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"durable": False}, "non-durable"),
        ({"exclusive": True}, "exclusive-owner"),
        ({"auto_delete": True}, "auto-delete"),
    ],
)
def test_quorum_queues_and_streams_are_durable_shared_and_lasting(
    arguments: dict[str, Any], changed: dict[str, bool], name: str
) -> None:
    fine = {"durable": True, "exclusive": False, "auto_delete": False, "generated": False}
    check_queue_properties(THING, arguments, **fine)
    check_queue_properties(THING, {}, **{**fine, **changed})
    with pytest.raises(Refusal) as refused:
        check_queue_properties(THING, arguments, **{**fine, **changed})
    assert refused.value.text == f"invalid property '{name}' for {THING}"


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_quorum_queues_and_streams_have_names_of_their_own(kind: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_queue_properties(
            THING,
            {"x-queue-type": kind},
            durable=True,
            exclusive=False,
            auto_delete=False,
            generated=True,
        )
    assert refused.value.text == (
        f"Cannot declare a server-named queue for type rabbit_{kind}_queue"
    )


def consumer_refusal(queue: dict[str, Any], arguments: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as refused:
        check_consumer_arguments(THING, queue, arguments)
    return refused.value.text


def test_consumers_have_the_arguments_of_their_queue_type() -> None:
    check_consumer_arguments(THING, {}, {"x-priority": 5, "mine": 1})
    check_consumer_arguments(THING, STREAM, {"x-stream-offset": "first", "x-stream-filter": "a"})
    assert consumer_refusal(STREAM, {"x-priority": 5}) == (
        f"invalid arg 'x-priority' for {THING} of queue type rabbit_stream_queue"
    )
    assert consumer_refusal({}, {"x-stream-offset": "first"}) == (
        f"invalid arg 'x-stream-offset' for {THING} of queue type rabbit_classic_queue"
    )
    assert consumer_refusal(STREAM, {"x-stream-match-unfiltered": "yes"}) == (
        f"invalid arg 'x-stream-match-unfiltered' for {THING}: {{unacceptable_type,longstr}}"
    )


def test_a_queue_is_classic_unless_it_says_otherwise() -> None:
    assert (queue_type({}), queue_type(STREAM)) == ("classic", "stream")


def test_arguments_without_effect_are_listed() -> None:
    assert ignored_arguments(
        {"x-queue-type": "classic", "x-queue-mode": "lazy", "note": "mine", "x-max-priority": 3}
    ) == ["x-queue-mode"]
    assert ignored_arguments({**QUORUM, "x-delivery-limit": 3, "x-max-in-memory-length": 9}) == [
        "x-max-in-memory-length"
    ]
    assert ignored_arguments({**QUORUM, "x-single-active-consumer": True}) == []
    assert ignored_arguments({**STREAM, "x-max-age": "1h", "x-max-length-bytes": 9}) == []
