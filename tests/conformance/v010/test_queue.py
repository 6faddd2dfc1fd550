"""The class queue of AMQP 0-10."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v010 import commands as c
from harebell.wire.v010.structs import MessageProperties, QueueQueryResult
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.conftest import Connect
from tests.conformance.sites import MemorySite, Site
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.talk import MESSAGES, NOT_ACQUIRED, OCTETS, Talk, begin
from tests.patience import eventually


def test_a_queue_is_what_it_was_declared_as(talk: Talk) -> None:
    talk.do(
        c.QueueDeclare(
            "made",
            "amq.fanout",
            durable=True,
            auto_delete=True,
            arguments={"qpid.max_count": 10, "x-message-ttl": 60000},
        ),
        c.QueueDeclare("made"),
    )
    talk.publish("", b"x", routing_key="made")
    found = talk.ask(c.QueueQuery("made"))
    assert found.arguments.pop("x-queue-type", "classic") == "classic"
    arguments = {"x-max-length": 10, "x-overflow": "reject-publish", "x-message-ttl": 60000}
    assert found == QueueQueryResult(
        "made", "amq.fanout", durable=True, auto_delete=True, arguments=arguments, message_count=1
    )
    talk.do(c.QueueDelete("made"))
    assert talk.ask(c.QueueQuery("made")) == QueueQueryResult()


def test_older_names_of_arguments_and_numbers_as_texts_are_understood(talk: Talk) -> None:
    given = {"x-qpid-priorities": 10, "qpid.max_count": "3", "qpid.policy_type": "ring"}
    talk.do(c.QueueDeclare("p", exclusive=True, auto_delete=True, arguments=given))
    for number, priority in enumerate((1, 9, 5, 0)):
        talk.publish("", b"%d" % number, routing_key="p", priority=priority)
    assert talk.ask(c.QueueQuery("p")).message_count == 3
    talk.subscribe("p")
    found = talk.deliveries()
    assert [each.header[0].priority for each in found] == [9, 5, 1]


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (c.QueueDeclare(""), 542, "is empty"),
        (c.QueueDeclare("amq.mine"), 530, "'amq.'"),
        (c.QueueDeclare("x", "missing"), 404, "no exchange 'missing'"),
        (c.QueueDeclare("q", "amq.fanout"), 530, "another alternate exchange"),
        (c.QueueDeclare("x", passive=True), 404, "no queue 'x'"),
        (c.QueueDeclare("x", arguments={"odd": 1}), 540, "unknown argument 'odd'"),
        (c.QueueDeclare("x", arguments={"qpid.policy_type": "odd"}), 542, "ring"),
        (c.QueueDeclare("x", arguments={"qpid.policy_type": {"ring": 1}}), 542, "ring"),
        (c.QueueDeclare("x", arguments={"x-max-length": -1}), 406, "x-max-length"),
        (c.QueueDelete(""), 542, "is empty"),
        (c.QueueDelete("x"), 404, "no queue 'x'"),
        (c.QueueDelete("q", if_empty=True), 406, "not empty"),
        (c.QueueDelete("q", if_unused=True), 406, "in use"),
        (c.QueuePurge(""), 542, "is empty"),
        (c.QueuePurge("x"), 404, "no queue 'x'"),
    ],
)
def test_an_impossible_command_ends_the_session(
    talk: Talk, command: Any, code: int, text: str
) -> None:
    talk.do(c.MessageSubscribe("q", "t"))
    talk.publish("", b"x", routing_key="q")
    talk.fails(command, code, text)


def test_an_exclusive_queue_is_its_sessions_alone(connect010: Connect010) -> None:
    one, two, three = begin(connect010(), 3)
    one.do(c.QueueDeclare("mine", exclusive=True), c.QueueDeclare("mine", exclusive=True))
    assert one.ask(c.QueueQuery("mine")).exclusive
    two.fails(c.QueueDeclare("mine"), 405, "locked queue 'mine'")
    three.do(c.QueueDeclare("mine", passive=True))
    three.fails(c.QueueDeclare("mine", passive=True, exclusive=True), 405, "'mine'")
    one.do(c.QueueDelete("mine"))


def test_an_exclusive_queue_is_free_or_gone_when_its_session_is_over(
    connect010: Connect010,
) -> None:
    one = begin(connect010())[0]
    one.do(
        c.QueueDeclare("left", durable=True, exclusive=True),
        c.QueueDeclare("gone", exclusive=True, auto_delete=True),
    )
    one.subscribe("gone")
    one.do(c.MessageCancel("t"))
    assert one.ask(c.QueueQuery("gone")).queue == "gone", "its last subscription is not its end"
    one.leave()
    other = begin(connect010())[0]
    assert other.ask(c.QueueQuery("gone")) == QueueQueryResult()
    assert not other.ask(c.QueueQuery("left")).exclusive
    other.do(c.QueueDeclare("left", exclusive=True), c.QueueDelete("left"))


def test_a_queue_that_others_use_cannot_be_had_alone(connect010: Connect010) -> None:
    one, other = (begin(connect010())[0] for _ in range(2))
    one.do(c.QueueDeclare("shared"), c.MessageSubscribe("shared", "t"))
    other.fails(c.QueueDeclare("shared", exclusive=True), 405, "used by others")
    one.do(c.MessageCancel("t"), c.QueueDelete("shared"))


def test_a_subscription_to_a_queue_that_the_session_deleted_can_be_cancelled(talk: Talk) -> None:
    talk.do(c.QueueDeclare("a"), c.MessageSubscribe("a", "t"), c.QueueDelete("a"))
    talk.do(c.MessageFlow("t", 0, 1), c.MessageCancel("t"), c.ExecutionSync())


def test_an_auto_delete_queue_goes_with_its_last_subscription(talk: Talk) -> None:
    talk.do(c.QueueDeclare("a", auto_delete=True), c.MessageSubscribe("a", "t"))
    talk.do(c.MessageSubscribe("a", "b", acquire_mode=1), c.MessageCancel("t"))
    assert talk.ask(c.QueueQuery("a")).queue == "a"
    talk.do(c.MessageCancel("b"))
    assert talk.ask(c.QueueQuery("a")) == QueueQueryResult()


def test_a_purge_leaves_what_is_out(talk: Talk) -> None:
    for body in (b"out", b"in"):
        talk.publish("", body, routing_key="q")
    talk.subscribe("q", credit=1)
    talk.do(c.QueuePurge("q"), c.MessageCancel("t"), c.MessageRelease(((0, 0),)))
    assert talk.bodies() == [b"out"]
    assert talk.ask(c.QueueQuery("q")).message_count == 1


def test_messages_left_by_a_queue_go_to_its_alternate_exchange(connect010: Connect010) -> None:
    one = begin(connect010())[0]
    one.do(
        c.QueueDeclare("letters", exclusive=True, auto_delete=True),
        c.ExchangeBind("letters", "amq.fanout", ""),
    )
    other = begin(connect010())[0]
    other.do(c.QueueDeclare("q2", "amq.fanout", exclusive=True, auto_delete=True))
    for body in (b"1", b"2", b"3"):
        other.publish("", body, routing_key="q2")
    other.subscribe("q2", credit=1)
    assert other.bodies() == [b"1"]
    other.leave()
    one.subscribe("letters")
    assert one.bodies() == [b"1", b"2", b"3"], "what was out is among them"


LETTERS = ("1", "2", "3", "4", "5")
EXPIRES_MS = 500


@pytest.fixture
def letters(connect010: Connect010) -> Talk:
    """A session that gets what the alternate exchange of `q2` gets."""
    one = begin(connect010())[0]
    one.do(
        c.QueueDeclare("letters", exclusive=True, auto_delete=True),
        c.ExchangeBind("letters", "amq.fanout", ""),
    )
    return one


def acquired(talk: Talk, **how: Any) -> None:
    """Declare `q2`, publish five messages, and take three without accepting them.

    The subscription comes before the messages: a queue that is in use does not expire meanwhile.
    """
    # In one write, or a queue that expires could do so before the subscription.
    talk.do(
        c.QueueDeclare("q2", "amq.fanout", **how),
        c.MessageSubscribe("q2", "t"),
        c.MessageFlow("t", OCTETS, None),
        c.MessageFlow("t", MESSAGES, 3),
    )
    for body in LETTERS:
        talk.publish("", body.encode(), routing_key="q2")
    talk.sync()
    assert talk.bodies() == [b"1", b"2", b"3"]


def all_of(letters: Talk) -> list[str]:
    """What is in the queue of letters, as texts."""
    count = letters.ask(c.QueueQuery("letters")).message_count
    letters.subscribe("letters")
    bodies = [body.decode() for body in letters.bodies()]
    assert len(bodies) == count
    return bodies


def test_a_queue_that_goes_with_its_last_subscription_leaves_what_is_acquired(
    letters: Talk, connect010: Connect010
) -> None:
    other = begin(connect010())[0]
    acquired(other, auto_delete=True)
    other.do(c.MessageCancel("t"))
    other.do(c.MessageRelease(((0, 2),)))
    assert all_of(letters) == [*LETTERS]


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_queue_that_another_session_deletes_leaves_what_is_acquired(
    letters: Talk, connect010: Connect010, cancelled: bool
) -> None:
    other = begin(connect010())[0]
    acquired(other)
    if cancelled:
        other.do(c.MessageCancel("t"))
    letters.do(c.QueueDelete("q2"))
    if not cancelled:
        other.peer.expect_exception(408, "queue 'q2' in vhost '/' was deleted")
    assert all_of(letters) == [*LETTERS]


def test_a_queue_that_its_own_session_deletes_leaves_what_is_acquired(
    letters: Talk, connect010: Connect010
) -> None:
    other = begin(connect010())[0]
    acquired(other, exclusive=True)
    other.do(c.QueueDelete("q2"))
    assert all_of(letters) == [*LETTERS]


def gone(letters: Talk, site: Site) -> bool:
    """Whether `q2` goes, in time or at once."""
    if isinstance(site, MemorySite):
        site.pass_time(1)
    return eventually(lambda: not letters.ask(c.QueueQuery("q2")).queue)


def test_a_queue_that_expires_leaves_what_is_acquired(
    letters: Talk, connect010: Connect010, site: Site
) -> None:
    other = begin(connect010())[0]
    acquired(other, arguments={"x-expires": EXPIRES_MS})
    other.do(c.MessageCancel("t"))
    assert gone(letters, site)
    assert all_of(letters) == [*LETTERS]


def test_accepted_messages_do_not_go_to_the_alternate_exchange(
    letters: Talk, connect010: Connect010
) -> None:
    other = begin(connect010())[0]
    acquired(other, auto_delete=True)
    other.do(c.MessageAccept(((1, 1),)), c.MessageCancel("t"))
    assert all_of(letters) == ["1", "3", "4", "5"]


@pytest.mark.parametrize("how", ["close", "expires", "delete", "auto-delete"])
def test_clients_of_older_versions_leave_what_is_out_too(
    letters: Talk, connect: Connect, site: Site, how: str
) -> None:
    peer = connect().open()
    arguments: dict[str, Any] = {"x-alternate-exchange": "amq.fanout"}
    if how == "expires":
        arguments["x-expires"] = EXPIRES_MS
    mine, short = how == "close", how == "auto-delete"
    declare = m.QueueDeclare("q2", exclusive=mine, auto_delete=short, arguments=arguments)
    if how == "expires":
        # In use, it does not expire before three messages are out; in one write, not before that.
        peer.send(declare, m.BasicQos(prefetch_count=3), m.BasicConsume("q2", "t"))
        for kind in (m.QueueDeclareOk, m.BasicQosOk, m.BasicConsumeOk):
            peer.expect(kind)
    else:
        peer.ask(declare)
    for body in LETTERS:
        peer.publish("", "q2", body.encode())
    for _ in range(3):
        if how == "expires":
            peer.expect_delivery()
        else:
            peer.get("q2", no_ack=False)
    if how == "expires":
        peer.ask(m.BasicCancel("t"))
    elif how == "close":
        peer.close()
    elif how == "delete":
        peer.ask(m.QueueDelete("q2"))
    elif how == "auto-delete":
        peer.ask(m.BasicConsume("q2", "t"))
        for _ in range(2):
            peer.expect_delivery()
        peer.ask(m.BasicCancel("t"))
    assert gone(letters, site)
    assert all_of(letters) == [*LETTERS]


@pytest.mark.parametrize(
    ("levels", "order"),
    [
        (2, "5678901234"),
        (3, "5678940123"),
        (4, "6789540123"),
        (9, "8976543210"),
        (10, "9876543210"),
        (12, "9876543210"),
    ],
)
def test_priorities_are_divided_among_fewer_levels_from_the_middle(
    talk: Talk, levels: int, order: str
) -> None:
    talk.do(c.QueueDeclare("p", exclusive=True, auto_delete=True, arguments=prioritised(levels)))
    for priority in range(10):
        talk.publish("", b"%d" % priority, routing_key="p", priority=priority)
    talk.subscribe("p")
    assert b"".join(talk.bodies()).decode() == order


def prioritised(levels: Any, **more: Any) -> dict[str, Any]:
    """The arguments of a queue with so many levels."""
    return {"qpid.priorities": levels, **{f"qpid.{name}": value for name, value in more.items()}}


@pytest.mark.parametrize("levels", [0, 257, "many", True])
def test_there_are_one_to_256_levels(talk: Talk, levels: Any) -> None:
    talk.fails(c.QueueDeclare("p", arguments=prioritised(levels)), 542, "from 1 to 256")


@pytest.mark.parametrize(("policy", "left"), [("ring", "998"), ("reject", "91")])
def test_of_a_full_ring_with_priorities_the_least_urgent_goes_first(
    talk: Talk, policy: str, left: str
) -> None:
    arguments = prioritised(10, max_count=3, policy_type=policy)
    talk.do(c.QueueDeclare("p", exclusive=True, auto_delete=True, arguments=arguments))
    for priority in (9, 1) if policy == "reject" else (9, 1, 2, 8, 0, 9):
        talk.publish("", b"%d" % priority, routing_key="p", priority=priority)
    talk.subscribe("p")
    assert b"".join(talk.bodies()).decode() == left


@pytest.mark.parametrize("exclusive", [True, False])
def test_an_auto_delete_queue_stays_for_its_time_when_nobody_uses_it(
    memory010: Connect010, memory: MemorySite, exclusive: bool
) -> None:
    one, watch = begin(memory010())[0], begin(memory010())[0]
    arguments = {"qpid.auto_delete_timeout": 10}
    one.do(c.QueueDeclare("t", exclusive=exclusive, auto_delete=True, arguments=arguments))
    one.publish("", b"kept", routing_key="t")
    memory.pass_time(60)
    one.subscribe("t")
    assert one.bodies() == [b"kept"]
    if exclusive:
        one.leave()
    else:
        one.do(c.MessageCancel("t"), c.MessageRelease(((0, 0),)))
    memory.pass_time(9)
    assert watch.ask(c.QueueQuery("t")).message_count == 1
    watch.do(c.QueueDeclare("t", exclusive=exclusive, auto_delete=True))
    watch.subscribe("t")
    assert watch.bodies() == [b"kept"]
    memory.pass_time(60)
    assert watch.ask(c.QueueQuery("t")).queue == "t"
    if exclusive:
        watch.leave()
        watch = begin(memory010())[0]
    else:
        watch.do(c.MessageCancel("t"), c.MessageRelease(((0, 0),)))
    memory.pass_time(11)
    assert not watch.ask(c.QueueQuery("t")).queue


@pytest.mark.parametrize("arguments", [{"qpid.group_header_key": "g"}, {}, prioritised(5)])
def test_a_browser_sees_what_was_there_when_its_credit_comes(
    talk: Talk, arguments: dict[str, Any]
) -> None:
    talk.do(c.QueueDeclare("b", exclusive=True, auto_delete=True, arguments=arguments))
    for body in (b"1", b"2"):
        talk.publish("", body, routing_key="b")
    talk.subscribe("b", acquire_mode=NOT_ACQUIRED)
    assert talk.bodies() == [b"1", b"2"]


def test_messages_of_a_connection_may_be_kept_from_itself(connect010: Connect010) -> None:
    one, other = (begin(connect010())[0] for _ in range(2))
    one.do(c.QueueDeclare("n", exclusive=True, auto_delete=True, arguments={"no-local": "true"}))
    one.subscribe("n")
    one.publish("", b"own", routing_key="n")
    other.publish("", b"other", routing_key="n")
    one.sync()
    assert one.bodies() == [b"other"]


def test_arguments_without_effect_are_logged(memory010: Connect010, memory: MemorySite) -> None:
    (talk,) = begin(memory010())
    talk.do(c.QueueDeclare("lazy", arguments={"x-queue-mode": "lazy"}))
    talk.sync()
    line = ("warning", "queue 'lazy': no effect in this version: x-queue-mode")
    assert memory.log.count(line) == 1
    talk.do(c.QueueDeclare("lazy"))
    talk.sync()
    assert memory.log.count(line) == 1


def headed(headers: dict[str, Any]) -> MessageProperties:
    """Properties with headers."""
    return MessageProperties(application_headers=headers)


@pytest.mark.parametrize(
    ("arguments", "header"),
    [
        ({"qpid.last_value_queue_key": "symbol"}, "symbol"),
        ({"qpid.last_value_queue": 1}, "qpid.LVQ_key"),
        ({"qpid.last_value_queue_no_browse": 1}, "qpid.LVQ_key"),
    ],
)
def test_a_queue_of_last_values_has_the_newest_message_of_each_key(
    talk: Talk, arguments: dict[str, Any], header: str
) -> None:
    talk.do(c.QueueDeclare("v", exclusive=True, auto_delete=True, arguments=arguments))
    assert talk.ask(c.QueueQuery("v")).arguments == {"x-last-value-key": header}
    for body, key in ((b"a1", "a"), (b"b1", "b"), (b"a2", "a"), (b"c1", b"c"), (b"c2", "c")):
        talk.publish("", body, headed({header: key}), routing_key="v")
    talk.subscribe("v", acquire_mode=NOT_ACQUIRED)
    assert talk.bodies() == [b"b1", b"a2", b"c2"]
    talk.publish("", b"b2", headed({header: "b"}), routing_key="v")
    assert talk.bodies() == [b"b2"]


def test_keys_of_other_versions_are_the_same(connect: Connect, connect010: Connect010) -> None:
    peer, (talk, *_) = connect().open(), begin(connect010())
    talk.do(c.QueueDeclare("v", arguments={"x-last-value-key": "symbol"}))
    for body, key in ((b"a1", "a"), (b"b1", "b"), (b"c1", "c")):
        talk.publish("", body, headed({"symbol": key}), routing_key="v")
    for text in ("a2", "c2"):
        peer.publish("", "v", text.encode(), BasicProperties(headers={"symbol": text[0]}))
    assert [peer.get("v").body for _ in range(peer.count("v"))] == [b"b1", b"a2", b"c2"]


def test_last_values_have_no_priorities(talk: Talk) -> None:
    arguments = {**prioritised(3), "qpid.last_value_queue_key": "k"}
    talk.fails(c.QueueDeclare("v", arguments=arguments), 406, "asks for another order")


def test_levels_take_turns_with_a_fair_share(talk: Talk) -> None:
    arguments = {"x-qpid-priorities": 10, "x-qpid-fairshare": 2, "x-qpid-fairshare-0": "1"}
    talk.do(c.QueueDeclare("p", exclusive=True, auto_delete=True, arguments=arguments))
    shares = {"qpid.fairshare": 2, "qpid.fairshare-0": 1}
    assert shares.items() <= talk.ask(c.QueueQuery("p")).arguments.items()
    for priority in (9, 9, 9, 0, 0, 5):
        talk.publish("", b"%d" % priority, routing_key="p", priority=priority)
    talk.subscribe("p")
    assert b"".join(talk.bodies()).decode() == "995090"


def test_messages_have_their_number_in_the_queue(talk: Talk) -> None:
    arguments = {"qpid.queue_msg_sequence": "seq", "qpid.max_count": 2, "qpid.policy_type": "ring"}
    talk.do(c.QueueDeclare("s", exclusive=True, auto_delete=True, arguments=arguments))
    for body in (b"1", b"2", b"3"):
        talk.publish("", body, headed({"mine": "x"}), routing_key="s")
    talk.subscribe("s")
    headers = [each.header[1].application_headers for each in talk.deliveries()]
    assert headers == [{"mine": "x", "seq": 2}, {"mine": "x", "seq": 3}]
