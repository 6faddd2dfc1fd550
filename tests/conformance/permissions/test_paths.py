"""Who is asked where the broker routes for a user: the last table of docs/reference/permissions.md.

Each test has the name of a line there, and shows its decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from harebell.auth.topics import TopicPermission
from harebell.model.settings.policy import Policy
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import structs
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_older, methods_transitional
from harebell.wire.v09 import methods_older as own
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v1 import composites as one
from tests.conformance.permissions.matrix import FINAL, ONE, Need
from tests.conformance.permissions.uses import source, target
from tests.conformance.permissions.worlds import KEY, Content, Message1, Refused, Session, allow
from tests.conformance.sites import MemorySite

WRITE_X = Need("write", "exchange", "x")


def _site(**kinds: str) -> MemorySite:
    """A broker with exchanges of these types, and queue `got` bound to `secret` with every key."""
    site = MemorySite()
    vhost = site.broker.vhosts["/"]
    vhost.declare_exchange("secret", "topic")
    vhost.bind("secret", vhost.declare_queue("got"), "#", {})
    vhost.declare_queue("q")
    for name, kind in kinds.items():
        vhost.declare_exchange(name, kind)
    return site


def _count(site: MemorySite, queue: str = "got") -> int:
    site.turn()
    return site.broker.vhosts["/"].queues[queue].ready_count()


def _restrict(site: MemorySite, *exchanges: str, pattern: str = "^nothing$") -> None:
    """The user may use no routing key but those of a pattern at these exchanges."""
    user = site.users.get("guest")
    assert user is not None
    topic = TopicPermission(pattern, pattern, "guest", "/")
    user.topic_permissions["/"] = dict.fromkeys(exchanges, topic)
    site.broker.vhosts["/"].router.changed()


def _publish(exchange: str, key: str = KEY, **properties: Any) -> Content:
    raw = encode_properties(BasicProperties(**properties))
    return Content(m.BasicPublish(exchange=exchange, routing_key=key), properties=raw)


def _refused(answer: Refused | None, text: str) -> None:
    assert answer is not None
    assert answer.code == 403
    assert text in answer.text


def _user(site: MemorySite, needs: Iterable[Need], version: str = "0-9-1") -> Session:
    session = Session(site, version)
    allow(site, list(needs))
    return session


@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_further_routing_keys_are_asked_for(header: str) -> None:
    site = _site(x="topic")
    session = _user(site, [WRITE_X])
    _restrict(site, "x", pattern=f"^{KEY}$")
    answer = session.do(_publish("x", headers={header: ["other"]}))
    _refused(answer, "write access to topic 'other' in exchange 'x'")


def test_a_publish_in_a_transaction_is_asked_for_when_it_is_published() -> None:
    site = _site(x="direct")
    vhost = site.broker.vhosts["/"]
    vhost.bind("x", vhost.queues["got"], KEY, {})
    session = Session(site, "0-9-1")
    assert session.do(m.TxSelect()) is None
    _refused(_user(site, []).do(_publish("x")), "write access to exchange 'x'")
    allow(site, [WRITE_X])
    assert session.do(_publish("x")) is None
    allow(site, [])
    assert session.do(m.TxCommit()) is None
    assert _count(site) == 1


def test_a_publish_in_a_branch_is_asked_for_when_it_is_published() -> None:
    site = _site(x="direct")
    session = Session(site, "0-8")
    assert session.do(own.DtxSelect(), own.DtxStart("t")) is None
    allow(site, [])
    _refused(session.do(_publish("x")), "write access to exchange 'x'")


def test_a_delayed_message_is_asked_for_its_topic_when_it_is_published() -> None:
    site = _site()
    vhost = site.broker.vhosts["/"]
    vhost.declare_exchange("x", "x-delayed-message", arguments={"x-delayed-type": "topic"})
    vhost.declare_exchange("y", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    session = _user(site, [WRITE_X, Need("write", "exchange", "y")])
    _restrict(site, "x", "y")
    assert session.do(_publish("y", headers={"x-delay": 5})) is None
    answer = session.do(_publish("x", headers={"x-delay": 5}))
    _refused(answer, f"write access to topic '{KEY}' in exchange 'x'")


def test_dead_letters_go_by_the_right_of_who_made_the_queue() -> None:
    site = _site(x="direct")
    vhost = site.broker.vhosts["/"]
    arguments = {"x-dead-letter-exchange": "secret", "x-max-length": 0}
    vhost.bind("x", vhost.declare_queue("full", arguments=arguments), KEY, {})
    session = _user(site, [WRITE_X])
    _restrict(site, "secret")
    assert session.do(_publish("x")) is None
    assert _count(site) == 1


def test_the_key_of_dead_letters_is_asked_for_before_their_exchange_is_made() -> None:
    site = _site()
    needs = [Need("configure", "queue", "new"), Need("read", "queue", "new")]
    session = _user(site, [*needs, Need("write", "exchange", "later")])
    _restrict(site, "later")
    arguments = {"x-dead-letter-exchange": "later", "x-dead-letter-routing-key": KEY}
    answer = session.do(m.QueueDeclare("new", arguments=arguments))
    _refused(answer, f"write access to topic '{KEY}' in exchange 'later'")


def test_an_alternate_exchange_goes_by_the_right_of_who_made_the_exchange() -> None:
    site = _site()
    site.broker.vhosts["/"].declare_exchange(
        "x", "direct", arguments={"alternate-exchange": "secret"}
    )
    session = _user(site, [WRITE_X])
    _restrict(site, "secret")
    assert session.do(_publish("x")) is None
    assert _count(site) == 1


def test_the_alternate_exchange_of_a_queue_goes_by_the_right_of_who_made_the_queue() -> None:
    site = _site()
    vhost = site.broker.vhosts["/"]
    vhost.declare_queue("a", arguments={"x-alternate-exchange": "secret"})
    session = _user(
        site, [Need("read", "queue", "a"), Need("write", "exchange", "amq.default")], FINAL
    )
    header = (structs.DeliveryProperties(routing_key="a"),)
    assert session.do(Content(c.MessageTransfer(""), 4, header)) is None
    # The broker's command 0 is the accept of the transfer.
    assert session.do(c.MessageSubscribe("a", "t"), c.MessageFlow("t", 0, 1)) is None
    assert session.do(c.MessageFlow("t", 1, 0xFFFF_FFFF), c.MessageReject(((1, 1),))) is None
    assert _count(site) == 1


def test_bindings_between_exchanges_go_by_the_right_of_who_binds() -> None:
    site = _site(x="fanout")
    vhost = site.broker.vhosts["/"]
    vhost.bind("x", vhost.exchange("secret"), "", {})
    session = _user(site, [WRITE_X])
    _restrict(site, "secret")
    assert session.do(_publish("x")) is None
    assert _count(site) == 1


def test_exchanges_of_policies_go_by_the_right_of_the_operator() -> None:
    site = _site(x="direct")
    vhost = site.broker.vhosts["/"]
    vhost.bind("x", vhost.declare_queue("full"), KEY, {})
    definition = {"max-length": 0, "dead-letter-exchange": "secret"}
    vhost.policies.put(Policy("p", "^full$", "queues", 0, definition))
    session = _user(site, [WRITE_X])
    assert session.do(_publish("x")) is None
    assert _count(site) == 1


def test_a_direct_reply_asks_for_the_default_exchange() -> None:
    site = _site()
    asker = Session(site, "0-9-1")
    assert asker.do(m.BasicConsume("amq.rabbitmq.reply-to", no_ack=True)) is None
    (name,) = site.broker.vhosts["/"].router.replies
    _refused(
        _user(site, [WRITE_X]).do(_publish("", name)), "write access to exchange 'amq.default'"
    )
    answerer = _user(site, [Need("write", "exchange", "amq.default")])
    assert answerer.do(_publish("", name)) is None


@pytest.mark.parametrize(
    "exchange", ["amq.rabbitmq.event", "amq.rabbitmq.log", "amq.rabbitmq.trace"]
)
def test_exchanges_of_the_broker_ask_for_read_when_they_are_bound(exchange: str) -> None:
    site = _site()
    session = _user(site, [Need("write", "queue", "q")])
    _refused(session.do(m.QueueBind("q", exchange, "#")), f"read access to exchange '{exchange}'")


# --- what errors say of other things --------------------------------------------------------------


@pytest.mark.parametrize("version", ["transitional 0-10", FINAL])
def test_an_error_names_other_things_only_to_users_who_may_know_them(version: str) -> None:
    for seen in (True, False):
        site = _site(x="direct")
        site.broker.vhosts["/"].declare_queue("hidden", arguments={"x-alternate-exchange": "x"})
        needs = [Need("configure", "exchange", "x")]
        session = _user(site, [*needs, Need("read", "queue", "hidden")] if seen else needs, version)
        kind = c.ExchangeDelete if version == FINAL else m.ExchangeDelete
        answer = session.do(kind(exchange="x"))
        assert answer is not None
        assert answer.code != 403
        assert ("hidden" in answer.text) is seen
        assert "alternate exchange" in answer.text


def test_the_default_exchange_does_not_say_which_queues_there_are() -> None:
    for version, question in (
        ("0-9", methods_older.ExchangeBound(exchange="", routing_key="got")),
        ("transitional 0-10", methods_transitional.BindingQuery(exchange="", routing_key="got")),
        (FINAL, c.ExchangeBound("", "", "got")),
    ):
        session = _user(_site(), [Need("write", "exchange", "amq.default")], version)
        _refused(session.do(question), "access to queue 'got'")


# --- AMQP 1.0 -------------------------------------------------------------------------------------

WRITE_DEFAULT = Need("write", "exchange", "amq.default")


def _other_session(site: MemorySite, needs: Iterable[Need] = ()) -> Session:
    return _user(site, needs, ONE)


def test_further_routing_keys_of_1_0_are_asked_for() -> None:
    site = _site(x="topic")
    session = _other_session(site, [WRITE_X])
    assert session.do(target(f"/exchanges/x/{KEY}")) is None
    _restrict(site, "x", pattern=f"^{KEY}$")
    assert session.do(Message1()) is None
    answer = session.do(Message1(annotations={"x-cc": ["other"]}))
    _refused(answer, "write access to topic 'other' in exchange 'x'")


def test_the_key_of_a_link_is_asked_for_with_each_message() -> None:
    site = _site(x="topic")
    session = _other_session(site, [WRITE_X])
    assert session.do(target("/exchanges/x/other")) is None
    _restrict(site, "x", pattern=f"^{KEY}$")
    _refused(session.do(Message1()), "write access to topic 'other' in exchange 'x'")


@pytest.mark.parametrize("address", ["/exchanges/x/k", "/queues/q", None])
def test_a_link_that_is_attached_gives_no_right_to_publish(address: str | None) -> None:
    site = _site(x="fanout")
    session = Session(site, ONE)
    assert session.do(target(address), Message1("/queues/q")) is None
    count = _count(site, "q")
    allow(site, [])
    _refused(session.do(Message1("/queues/q")), "write access to exchange")
    assert _count(site, "q") == count


def test_a_message_of_another_user_is_asked_for_by_every_link() -> None:
    site = _site()
    for address in ("/queues/q", None):
        session = _other_session(site, [WRITE_DEFAULT])
        answer = session.do(target(address), Message1("/queues/q", user=b"somebody"))
        assert (answer is not None and "user_id" in answer.text) or session.returned == 1
    assert _count(site, "q") == 0


def test_a_post_in_a_transaction_of_1_0_is_asked_for_when_it_is_posted() -> None:
    site = _site()
    session = _other_session(site, [WRITE_DEFAULT])
    assert session.do(target("/queues/q"), one.Declare()) is None
    state = one.TransactionalState(session.transaction)
    assert session.do(Message1(state=state)) is None
    allow(site, [])
    assert session.do(one.Discharge(session.transaction)) is None
    assert _count(site, "q") == 1
    session = _other_session(site, [WRITE_DEFAULT])
    assert session.do(target("/queues/q"), one.Declare()) is None
    allow(site, [])
    state = one.TransactionalState(session.transaction)
    _refused(session.do(Message1(state=state)), "write access to exchange 'amq.default'")
    assert _count(site, "q") == 1


def test_a_direct_reply_of_1_0_asks_for_the_default_exchange() -> None:
    site = _site()
    asker = one.Source(dynamic=True, capabilities=("rabbitmq:volatile-queue",))
    asked = one.Attach("r", 1, True, 1, source=asker, target=one.Target())
    assert _other_session(site).do(asked) is None
    (name,) = site.broker.vhosts["/"].router.replies
    address = f"/queues/{name}"
    _refused(_other_session(site, [WRITE_X]).do(target(address)), "exchange 'amq.default'")
    assert _other_session(site, [WRITE_DEFAULT]).do(target(address)) is None


@pytest.mark.parametrize("receives", [True, False])
def test_a_dynamic_node_needs_configure_and_for_a_target_write(receives: bool) -> None:
    node: Any = (one.Source if receives else one.Target)(dynamic=True)
    asked = one.Attach("l", 0, receives, initial_delivery_count=0)
    asked.source, asked.target = (node, one.Target()) if receives else (one.Source(), node)
    configure = Need("configure", "queue", "amq[.]dyn-.*")
    needs = [configure] if receives else [configure, WRITE_DEFAULT]
    assert _other_session(_site(), needs).do(asked) is None
    for missing in needs:
        site = _site()
        before = set(site.broker.vhosts["/"].queues)
        session = _other_session(site, [need for need in needs if need != missing])
        _refused(session.do(asked), f"{missing.action} access to {missing.kind}")
        assert set(site.broker.vhosts["/"].queues) == before


def test_a_source_that_is_an_exchange_needs_all_that_its_queue_needs() -> None:
    queue = "amq[.]gen-.*"
    needs = [Need("configure", "queue", queue), Need("write", "queue", queue)]
    needs.append(Need("read", "exchange", "x"))
    assert _other_session(_site(x="topic"), needs).do(source(f"/exchange/x/{KEY}")) is None
    for missing in needs:
        site = _site(x="topic")
        before = set(site.broker.vhosts["/"].queues)
        session = _other_session(site, [need for need in needs if need != missing])
        _refused(session.do(source(f"/exchange/x/{KEY}")), f"{missing.action} access")
        assert set(site.broker.vhosts["/"].queues) == before
    site = _site(x="topic")
    session = _other_session(site, needs)
    _restrict(site, "x", pattern="^other$")
    _refused(session.do(source(f"/exchange/x/{KEY}")), f"read access to topic '{KEY}'")


@pytest.mark.parametrize(
    "sent",
    [[source("name")], [target("name")], [target(None), Message1("name")]],
    ids=["source", "target", "to"],
)
def test_a_bare_name_says_nothing_of_what_there_is_without_a_permission(sent: list[Any]) -> None:
    answers = set()
    for kind in ("", "queue", "exchange"):
        site = MemorySite(addresses="bare")
        vhost = site.broker.vhosts["/"]
        if kind == "queue":
            vhost.declare_queue("name")
        elif kind == "exchange":
            vhost.declare_exchange("name", "fanout")
        answers.add(_other_session(site).do(*sent))
    (answer,) = answers
    _refused(answer, "refused for user 'guest'")
