"""Declaring and deleting: what is allowed, what is refused in which words, and what goes along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.model.queue.arguments import queue_type
from harebell.model.settings.metadata import Metadata
from harebell.model.vhost import PREDECLARED, WATCHERS, VHost
from tests.unit.model.things import Taker, message, vhost

CLASSIC = {"x-queue-type": "classic"}


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[ErrorKind, str]:
    with pytest.raises(Refusal) as refused:
        call(*arguments, **options)
    return refused.value.kind, refused.value.text


def test_the_predeclared_exchanges_are_there_and_durable() -> None:
    where = vhost()
    assert set(where.exchanges) == {"", *PREDECLARED, *WATCHERS}
    assert all(exchange.durable for exchange in where.exchanges.values())


# --- exchanges ------------------------------------------------------------------------------------


def test_declaring_again_gives_the_same_exchange() -> None:
    where = vhost()
    first = where.declare_exchange("e", "topic", durable=True, arguments={"mine": 1})
    assert where.declare_exchange("e", "topic", durable=True) is first


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "fanout"}, "arg 'type' for exchange 'e' in vhost '/': received 'fanout' but"),
        ({"durable": True}, "arg 'durable' for exchange 'e' in vhost '/': received 'true' but"),
        ({"auto_delete": True}, "arg 'auto_delete' for exchange 'e'"),
        ({"internal": True}, "arg 'internal' for exchange 'e'"),
        ({"arguments": {"alternate-exchange": "x"}}, "arg 'alternate-exchange' for exchange 'e'"),
    ],
)
def test_an_exchange_cannot_be_redeclared_differently(changed: dict[str, Any], words: str) -> None:
    where = vhost()
    where.declare_exchange("e", "direct")
    kind, text = refusal(where.declare_exchange, "e", **{"kind": "direct", **changed})
    assert kind is ErrorKind.PRECONDITION_FAILED
    assert f"inequivalent {words}" in text


def test_exchange_names_and_kinds_are_checked() -> None:
    where = vhost()
    assert refusal(where.declare_exchange, "", "direct") == (
        ErrorKind.ACCESS_REFUSED,
        "operation not permitted on the default exchange",
    )
    assert refusal(where.declare_exchange, "amq.mine", "direct") == (
        ErrorKind.ACCESS_REFUSED,
        "exchange name 'amq.mine' contains reserved prefix 'amq.*'",
    )
    assert refusal(where.declare_exchange, "e", "x-new")[1] == "unknown exchange type 'x-new'"
    assert refusal(where.declare_exchange, "e", "direct", arguments={"alternate-exchange": 5}) == (
        ErrorKind.PRECONDITION_FAILED,
        "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'e' in vhost '/'",
    )
    where.declare_exchange("amq.direct", "direct", durable=True)


def test_exchanges_are_deleted_with_their_bindings_on_both_sides() -> None:
    where = vhost()
    queue = where.declare_queue("q")
    where.declare_exchange("middle", "fanout")
    where.bind("middle", queue, "")
    where.bind("amq.fanout", where.exchange("middle"), "")
    where.delete_exchange("middle")
    assert list(where.bindings()) == []
    assert where.router.route(where.exchange("amq.fanout"), message()) == ()
    assert not queue.bound
    where.delete_exchange("middle")


def test_a_used_exchange_is_kept_when_it_must_be_unused() -> None:
    where = vhost()
    where.declare_exchange("e", "fanout")
    where.bind("e", where.declare_queue("q"), "")
    assert refusal(where.delete_exchange, "e", if_unused=True) == (
        ErrorKind.PRECONDITION_FAILED,
        "exchange 'e' in vhost '/' in use",
    )
    where.unbind("e", where.queue("q"), "")
    where.delete_exchange("e", if_unused=True)
    assert "e" not in where.exchanges


def test_system_exchanges_cannot_be_deleted() -> None:
    where = vhost()
    assert refusal(where.delete_exchange, "amq.topic")[0] is ErrorKind.ACCESS_REFUSED
    assert refusal(where.delete_exchange, "")[0] is ErrorKind.ACCESS_REFUSED


def test_an_auto_delete_exchange_goes_with_its_last_binding_and_takes_others_along() -> None:
    where = vhost()
    for name in ("outer", "inner"):
        where.declare_exchange(name, "fanout", auto_delete=True)
    where.bind("outer", where.exchange("inner"), "")
    where.bind("inner", where.declare_queue("q"), "")
    where.bind("inner", where.declare_queue("p"), "")
    where.delete_queue("q")
    assert "inner" in where.exchanges
    where.unbind("inner", where.queue("p"), "")
    assert "inner" not in where.exchanges
    assert "outer" not in where.exchanges


# --- queues ---------------------------------------------------------------------------------------


def test_declaring_again_gives_the_same_queue() -> None:
    where = vhost()
    first = where.declare_queue("q", durable=True, arguments={"x-max-length": 5})
    assert where.declare_queue("q", durable=True, arguments={"x-max-length": 5}) is first


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"durable": True}, "arg 'durable'"),
        ({"auto_delete": True}, "arg 'auto_delete'"),
        ({"arguments": {"x-expires": 5}}, "arg 'x-expires'"),
    ],
)
def test_a_queue_cannot_be_redeclared_differently(changed: dict[str, Any], words: str) -> None:
    where = vhost()
    where.declare_queue("q")
    kind, text = refusal(where.declare_queue, "q", **changed)
    assert kind is ErrorKind.PRECONDITION_FAILED
    assert f"inequivalent {words} for queue 'q' in vhost '/'" in text


def test_only_the_broker_may_make_names_with_the_reserved_prefix() -> None:
    where = vhost()
    assert refusal(where.declare_queue, "amq.q") == (
        ErrorKind.ACCESS_REFUSED,
        "queue name 'amq.q' contains reserved prefix 'amq.*'",
    )
    assert where.declare_queue("amq.gen-1", generated=True).name == "amq.gen-1"


def test_an_exclusive_queue_is_its_owners_alone() -> None:
    where, mine, other = vhost(), object(), object()
    queue = where.declare_queue("q", exclusive=True, durable=True, owner=mine)
    assert not queue.durable, "an exclusive queue ends with its connection"
    assert where.declare_queue("q", exclusive=True, durable=True, owner=mine) is queue
    assert where.queue("q", mine) is queue
    for call in (where.queue, where.delete_queue):
        kind, text = refusal(call, "q", other)
        assert kind is ErrorKind.RESOURCE_LOCKED
        assert text.startswith("cannot obtain exclusive access to locked queue 'q' in vhost '/'")
    assert refusal(where.declare_queue, "q", owner=mine)[0] is ErrorKind.RESOURCE_LOCKED
    assert refusal(where.declare_queue, "q", exclusive=True, owner=other)[0] is (
        ErrorKind.RESOURCE_LOCKED
    )


def test_a_shared_queue_does_not_become_exclusive() -> None:
    where = vhost()
    where.declare_queue("q")
    assert refusal(where.declare_queue, "q", exclusive=True, owner=object())[0] is (
        ErrorKind.RESOURCE_LOCKED
    )


def test_an_exclusive_consumer_excludes_others_until_it_goes() -> None:
    where = vhost()
    queue = where.declare_queue("q")
    alone = Taker(queue, exclusive=True)
    queue.add_consumer(alone)
    for exclusive in (False, True):
        kind, text = refusal(where.check_consumer, queue, exclusive=exclusive)
        assert (kind, text) == (
            ErrorKind.ACCESS_REFUSED,
            "queue 'q' in vhost '/' in exclusive use",
        )
    where.remove_consumer(alone)
    for tag in ("a", "b"):
        where.check_consumer(queue, exclusive=False)
        queue.add_consumer(Taker(queue, tag))
    assert refusal(where.check_consumer, queue, exclusive=True)[0] is ErrorKind.ACCESS_REFUSED


def test_a_connection_takes_its_exclusive_queues_along() -> None:
    where, mine = vhost(), object()
    where.declare_queue("mine", exclusive=True, owner=mine)
    where.declare_queue("theirs", exclusive=True, owner=object())
    where.declare_queue("shared")
    where.drop_owned(mine)
    assert set(where.queues) == {"theirs", "shared"}


def test_deleting_counts_what_was_ready_and_frees_it() -> None:
    gauge = Gauge()
    where = vhost(gauge)
    queue = where.declare_queue("q")
    for _ in range(3):
        queue.publish(message(b"x"))
    assert where.delete_queue("q") == 3
    assert gauge.used == 0
    assert where.delete_queue("q") == 0
    assert where.drop_queue(queue) == 0


def test_deleting_under_a_condition_leaves_a_queue_that_does_not_fit() -> None:
    where = vhost()
    queue = where.declare_queue("q")
    queue.publish(message(b"x"))
    assert refusal(where.delete_queue, "q", if_empty=True)[1] == "queue 'q' in vhost '/' not empty"
    queue.add_consumer(Taker(queue))
    assert refusal(where.delete_queue, "q", if_unused=True)[1] == "queue 'q' in vhost '/' in use"
    assert where.delete_queue("q", if_empty=True) == 0


def test_a_missing_thing_is_named() -> None:
    where = vhost()
    assert refusal(where.queue, "q") == (ErrorKind.NOT_FOUND, "no queue 'q' in vhost '/'")
    assert refusal(where.exchange, "e") == (ErrorKind.NOT_FOUND, "no exchange 'e' in vhost '/'")


# --- consumers ------------------------------------------------------------------------------------


def consume(where: VHost, **options: Any) -> Taker:
    queue = where.queue("q")
    where.check_consumer(queue, exclusive=options.get("exclusive", False))
    taker = Taker(queue, **options)
    queue.add_consumer(taker)
    return taker


def test_an_exclusive_consumer_is_alone() -> None:
    where = vhost()
    where.declare_queue("q")
    only = consume(where, exclusive=True)
    in_use = (ErrorKind.ACCESS_REFUSED, "queue 'q' in vhost '/' in exclusive use")
    assert refusal(consume, where) == in_use
    where.remove_consumer(only)
    consume(where)
    assert refusal(consume, where, exclusive=True) == in_use


def test_an_auto_delete_queue_goes_with_its_last_consumer_and_not_before_the_first() -> None:
    where = vhost()
    where.declare_queue("q", auto_delete=True)
    first, second = consume(where), consume(where)
    where.remove_consumer(first)
    assert "q" in where.queues
    where.remove_consumer(second)
    assert "q" not in where.queues
    where.remove_consumer(second)


def test_a_queue_that_is_not_auto_delete_stays_without_consumers() -> None:
    where = vhost()
    where.declare_queue("q")
    where.remove_consumer(consume(where))
    assert "q" in where.queues


# --- bindings -------------------------------------------------------------------------------------


def test_binding_needs_a_source_that_is_there_and_not_the_default_one() -> None:
    where = vhost()
    queue = where.declare_queue("q")
    assert refusal(where.bind, "e", queue, "")[0] is ErrorKind.NOT_FOUND
    assert refusal(where.bind, "", queue, "")[0] is ErrorKind.ACCESS_REFUSED
    assert refusal(where.unbind, "", queue, "")[0] is ErrorKind.ACCESS_REFUSED


def test_unbinding_what_is_not_there_says_so() -> None:
    where = vhost()
    queue = where.declare_queue("q")
    assert not where.unbind("no such", queue, "")
    assert not where.unbind("amq.direct", None, "")
    assert not where.unbind("amq.direct", queue, "never bound")


def test_equal_bindings_are_one_and_all_are_listed() -> None:
    where = vhost()
    queue = where.declare_queue("q")
    for _ in range(2):
        where.bind("amq.direct", queue, "k", {"a": 1})
    where.bind("amq.direct", queue, "k")
    assert sorted(bool(each.arguments) for each in where.bindings()) == [False, True]
    assert where.unbind("amq.direct", queue, "k", {"a": 1})
    assert [each.arguments for each in where.bindings()] == [{}]


# --- the default type of queues -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "brokers", "flags", "kind"),
    [
        ("", "", {"durable": True}, None),
        ("quorum", "", {"durable": True}, "quorum"),
        ("", "stream", {"durable": True}, "stream"),
        ("quorum", "stream", {"durable": True}, "quorum"),
        ("classic", "stream", {"durable": True}, "classic"),
        ("classic", "", {}, "classic"),
        ("quorum", "", {}, None),
        ("quorum", "", {"durable": True, "auto_delete": True}, None),
        ("quorum", "", {"durable": True, "exclusive": True}, None),
    ],
)
def test_a_queue_without_a_type_is_of_the_default_type_where_it_can_be(
    own: str, brokers: str, flags: dict[str, bool], kind: str | None
) -> None:
    where = vhost()
    where.broker_queue_type = brokers
    where.set_metadata(Metadata(default_queue_type=own))
    made = where.declare_queue("q", owner=object(), **flags)
    assert made.arguments.get("x-queue-type") == kind
    assert queue_type(made.arguments) == (kind or "classic")


def test_a_type_of_its_own_goes_before_the_default() -> None:
    where = vhost()
    where.set_metadata(Metadata(default_queue_type="quorum"))
    arguments = {"x-queue-type": "classic"}
    assert where.declare_queue("q", durable=True, arguments=arguments).kind == "classic"


@pytest.mark.parametrize(("first", "second"), [({}, CLASSIC), (CLASSIC, {})])
def test_naming_no_type_is_the_same_as_naming_the_classic_one(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    where = vhost()
    made = where.declare_queue("q", durable=True, arguments=first)
    assert where.declare_queue("q", durable=True, arguments=second) is made


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        (CLASSIC, {"x-queue-version": 2}, "x-queue-version"),
        (CLASSIC, {"x-consumer-timeout": 5}, "x-consumer-timeout"),
        (CLASSIC, {"x-queue-type": "quorum", "x-delivery-limit": 5}, "x-queue-type"),
        ({"x-queue-type": "quorum"}, {"x-max-priority": 5}, "x-queue-type"),
        ({"x-queue-type": "quorum"}, CLASSIC, "x-queue-type"),
    ],
)
def test_a_redeclaration_is_compared_in_what_the_type_of_the_queue_knows(
    first: dict[str, Any], second: dict[str, Any], named: str
) -> None:
    where = vhost()
    where.declare_queue("q", durable=True, arguments=first)
    with pytest.raises(Refusal, match=f"^inequivalent arg '{named}' for queue 'q'"):
        where.declare_queue("q", durable=True, arguments=second)


def test_the_default_type_is_part_of_what_a_redeclaration_says() -> None:
    where = vhost()
    where.declare_queue("old", durable=True)
    where.set_metadata(Metadata(default_queue_type="quorum"))
    first = where.declare_queue("q", durable=True)
    assert where.declare_queue("q", durable=True, arguments={"x-queue-type": "quorum"}) is first
    assert where.declare_queue("q", durable=True) is first
    with pytest.raises(Refusal) as refusal:
        where.declare_queue("old", durable=True)
    assert str(refusal.value) == (
        "inequivalent arg 'x-queue-type' for queue 'old' in vhost '/': received the value "
        "'quorum' of type 'longstr' but current is none"
    )


def test_the_broker_makes_up_no_names_for_queues_that_are_quorum_by_default() -> None:
    where = vhost()
    where.set_metadata(Metadata(default_queue_type="quorum"))
    with pytest.raises(Refusal, match="server-named queue for type rabbit_quorum_queue"):
        where.declare_queue("amq.gen-1", durable=True, generated=True)
    assert where.declare_queue("amq.gen-1", exclusive=True, owner=1, generated=True)
