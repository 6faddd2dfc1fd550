"""A recent history exchange keeps no more than it says, and lets go of the rest."""

from __future__ import annotations

from harebell.base.gauge import Gauge
from harebell.model.broker import Broker
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import headers_of, message, vhost


def test_messages_older_than_the_history_take_no_memory() -> None:
    gauge = Gauge()
    sales = vhost(gauge)
    exchange = sales.declare_exchange(
        "x", "x-recent-history", arguments={"x-recent-history-length": 2}
    )
    for number in range(5):
        sales.router.send(exchange, message(b"%d" % number))
    assert gauge.used == 2 * message(b"0").footprint()
    sales.delete_exchange("x")
    assert gauge.used == 0


def test_later_changes_of_a_publishers_message_do_not_reach_newcomers() -> None:
    sales = vhost()
    exchange = sales.declare_exchange("x", "x-recent-history")
    sent = message(b"m")
    sales.router.send(exchange, sent)
    sent.origin, sent.due = 7, 8
    newcomer = sales.declare_queue("q")
    sales.bind("x", newcomer, "")
    found, _, _ = newcomer.get()
    assert (found.body, found.origin, found.due) == (b"m", 0, 0)


def test_only_an_exchange_that_keeps_something_has_a_log() -> None:
    sales = vhost()
    kept = sales.declare_exchange("x", "x-recent-history")
    other = sales.declare_exchange("y", "x-recent-history")
    plain = sales.declare_exchange("z", "fanout")
    assert len({kept.identity, other.identity, ""}) == 3
    assert plain.identity == ""


def test_the_identity_of_its_log_is_no_argument_of_the_exchange() -> None:
    store = MemoryStore(Gauge())
    before = Broker(store, Gauge(), headers_of).vhosts["/"]
    arguments = {"x-recent-history-length": 2, "x-other": 1}
    made = before.declare_exchange("x", "x-recent-history", durable=True, arguments=arguments)
    after = Broker(store, Gauge(), headers_of)
    assert after.restore() == []
    found = after.vhosts["/"].exchange("x")
    assert (dict(found.arguments), found.identity) == (arguments, made.identity)
