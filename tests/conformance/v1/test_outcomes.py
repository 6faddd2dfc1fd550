"""Outcomes with more to say than their name: annotations, counts and reasons (AMQP 1.0 3.4)."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.convert import headers_of
from harebell.front.limits import MODIFIED_BYTES
from harebell.model.limits import CHANGED_PROPERTIES_BYTES
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.methods import QueueBind, QueueBindOk, QueueDeclare, QueueDeclareOk
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import encode_sections
from harebell.wire.v1.values import Described, Symbol, UInt
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1
from tests.conformance.v1.test_consuming import expect_bodies, fill, sections_of

KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "priority": {"x-max-priority": 5},
    "quorum": {"x-queue-type": "quorum"},
    "last values": {"x-last-value-key": "x-row"},
}
DESCRIPTOR = Symbol("d:d")
KEPT = ("x-exchange", "x-routing-key", "x-delivery-count", "x-acquired-count")


def declare(peer: Peer, name: str, **arguments: Any) -> str:
    """A queue whose dead letters go to another one."""
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    peer.send(QueueDeclare(queue=f"{name}-dead", durable=True))
    peer.expect(QueueDeclareOk)
    peer.send(QueueDeclare(queue=name, durable=True, arguments=letters | arguments))
    peer.expect(QueueDeclareOk)
    return name


def own(annotations: dict[str, Any]) -> dict[str, Any]:
    """Annotations without those that the broker adds to a delivery."""
    return {key: value for key, value in annotations.items() if key not in KEPT}


def modified(**annotations: Any) -> c.Modified:
    """The outcome with these annotations, which have `_` for `-` in their keys."""
    fields = {Symbol(key.replace("_", "-")): value for key, value in annotations.items()}
    return c.Modified(message_annotations=fields)


# --- annotations --------------------------------------------------------------------------------


@pytest.mark.rule("1.0#145", "1.0#132")
@pytest.mark.parametrize("kind", KINDS)
def test_annotations_of_modified_are_merged_into_the_message(
    peer: Peer, peer1: Peer1, name: str, kind: str
) -> None:
    declare(peer, name, **KINDS[kind])
    peer1.attach_sender(f"/queues/{name}", 0)
    sections = encode_sections(
        c.Header(durable=True), {"x-old": "a", "x-kept": UInt(7)}, c.Properties(subject="s")
    )
    peer1.transfer(0, b"0", sections=sections)
    peer1.expect(c.Disposition, state=c.Accepted())
    peer1.transfer(0, b"1", sections=sections)
    peer1.expect(c.Disposition, state=c.Accepted())
    peer1.attach_receiver(f"/queues/{name}", 1, credit=1)
    expect_bodies(peer1, b"0")
    changes = modified(x_old=Symbol("b"), x_opt_new=[1, Described(DESCRIPTOR, "d")])
    peer1.send(c.Disposition(True, 0, None, True, changes))
    peer1.give(1, 9, delivery_count=1)
    # It is still before the message that was never delivered.
    first, second = expect_bodies(peer1, b"0", b"1")
    found = sections_of(first)
    assert own(found.message_annotations()) == {
        "x-old": "b",
        "x-kept": 7,
        "x-opt-new": [1, Described(DESCRIPTOR, "d")],
    }
    assert isinstance(found.message_annotations()["x-old"], Symbol)
    header = found.header()
    assert (header.durable, header.first_acquirer, header.delivery_count) == (True, False, 0)
    assert found.properties().subject == "s"
    assert own(sections_of(second).message_annotations()) == {"x-old": "a", "x-kept": 7}
    # Settled once, it is gone with both of its places.
    peer1.send(c.Disposition(True, 1, 2, True, c.Accepted()))
    peer1.quiet()
    assert peer.count(name) == 0


@pytest.mark.rule("1.0#145")
def test_a_last_value_keeps_its_annotations_and_its_key_and_no_successor_is_lost(
    peer: Peer, peer1: Peer1, name: str
) -> None:
    declare(peer, name, **KINDS["last values"])
    peer1.attach_sender(f"/queues/{name}", 0)

    def send(row: str, body: bytes) -> None:
        peer1.transfer(0, body, sections=encode_sections(message_annotations={"x-row": row}))
        peer1.expect(c.Disposition, state=c.Accepted())

    send("a", b"a1")
    send("b", b"b1")
    peer1.attach_receiver(f"/queues/{name}", 1, credit=2)
    expect_bodies(peer1, b"a1", b"b1")
    peer1.send(c.Disposition(True, 0, None, True, modified(x_note="one")))
    # It would replace the last value of another key.
    peer1.send(c.Disposition(True, 1, None, True, modified(x_row="a", x_note="two")))
    assert peer.count(name) == 2
    peer1.give(1, 2, delivery_count=2)
    for transfer, row, note in zip(
        expect_bodies(peer1, b"b1", b"a1"), "ba", (None, "one"), strict=True
    ):
        found = own(sections_of(transfer).message_annotations())
        assert found == {"x-row": row} | ({"x-note": note} if note else {})
    send("a", b"a2")
    peer1.send(c.Disposition(True, 2, 3, True, modified(x_note="three")))
    # The successor of one of them is there alone; the other one is replaced as ever.
    send("b", b"b2")
    assert peer.count(name) == 2
    assert [peer.get(name).body for _ in range(2)] == [b"a2", b"b2"]


@pytest.mark.rule("1.0#145")
def test_a_message_of_0_9_1_gets_them_as_headers(peer: Peer, queue: str, peer1: Peer1) -> None:
    peer.publish("", queue, b"0", BasicProperties(headers={"x-old": 1, "plain": "p"}))
    assert peer.count(queue) == 1
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=1)
    expect_bodies(peer1, b"0")
    peer1.send(c.Disposition(True, 0, None, True, modified(x_old="b", x_opt_new=UInt(3))))
    peer1.send(c.Detach(1, True))
    peer1.expect(c.Detach)
    got = peer.get(queue)
    assert got.properties.headers == {"x-old": "b", "plain": "p", "x-opt-new": 3}
    assert got.body == b"0"


@pytest.mark.rule("1.0#145", "1.0#144")
@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_letter_has_the_annotations_of_its_outcome(
    peer: Peer, peer1: Peer1, name: str, kind: str
) -> None:
    declare(peer, name, **KINDS[kind])
    fill(peer1, name, 1)
    peer1.attach_receiver(f"/queues/{name}-dead", 2, credit=9)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=9)
    expect_bodies(peer1, b"0")
    state = c.Modified(False, True, {Symbol("x-why"): "broken"})
    peer1.send(c.Disposition(True, 0, None, True, state))
    found = sections_of(expect_bodies(peer1, b"0")[0]).message_annotations()
    assert found["x-why"] == "broken"
    assert found["x-opt-deaths"][0]["reason"] == "rejected"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("own", "'own' is no symbol that begins with 'x-'"),
        ("x-" + "k" * 254, "is no symbol that begins with 'x-'"),
        ("x-opt-deaths", "'x-opt-deaths' is an annotation of the broker"),
        ("x-cc", "'x-cc' is an annotation of the broker"),
    ],
)
@pytest.mark.rule("1.0#133")
def test_annotations_that_a_message_cannot_get(
    queue: str, peer1: Peer1, key: str, text: str
) -> None:
    fill(peer1, queue, 1)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=9)
    expect_bodies(peer1, b"0")
    state = c.Modified(message_annotations={Symbol(key): 1})
    peer1.send(c.Disposition(True, 0, None, True, state))
    peer1.expect_error(c.End, "amqp:invalid-field", "modified: message-annotations", text)
    peer1.send(c.End())
    # Nothing is lost.
    peer1.begin()
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=9)
    expect_bodies(peer1, b"0")


def test_annotations_of_one_outcome_are_limited(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 1)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=9)
    expect_bodies(peer1, b"0")
    state = modified(x_large="x" * MODIFIED_BYTES)
    peer1.send(c.Disposition(True, 0, None, True, state))
    peer1.expect_error(c.End, "amqp:resource-limit-exceeded", "message-annotations have")
    peer1.send(c.End())


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_does_not_grow_for_ever(peer: Peer, peer1: Peer1, name: str, kind: str) -> None:
    declare(peer, name, **KINDS[kind])
    fill(peer1, name, 1)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=99)
    sizes = []
    for number in range(8):
        found = expect_bodies(peer1, b"0")[0]
        sizes.append(len(found.payload))
        state = modified(**{f"x_{number}": "x" * (MODIFIED_BYTES - 100)})
        peer1.send(c.Disposition(True, number, None, True, state))
    expect_bodies(peer1, b"0")
    assert sizes == sorted(sizes)
    assert CHANGED_PROPERTIES_BYTES - MODIFIED_BYTES < sizes[-1] < CHANGED_PROPERTIES_BYTES + 1_000


def test_with_ordering_keys_a_message_keeps_its_place_and_its_annotations(
    peer: Peer, peer1: Peer1, name: str
) -> None:
    arguments = {"x-group-key": "key"}
    peer.send(QueueDeclare(queue=name, durable=True, arguments=arguments))
    peer.expect(QueueDeclareOk)
    for body in (b"0", b"1"):
        peer.publish("", name, body, BasicProperties(headers={"key": body.decode()}))
    assert peer.count(name) == 2
    peer1.attach_receiver(f"/queues/{name}", 1, credit=1)
    expect_bodies(peer1, b"0")
    peer1.send(c.Disposition(True, 0, None, True, modified(x_new=1)))
    peer1.give(1, 9, delivery_count=1)
    found = expect_bodies(peer1, b"0", b"1")
    assert "x-new" not in sections_of(found[0]).message_annotations()


@pytest.mark.rule("1.0#173")
def test_an_outcome_in_a_transaction_has_its_annotations_too(
    peer: Peer, peer1: Peer1, name: str
) -> None:
    declare(peer, name)
    fill(peer1, name, 2)
    peer1.attach_sender(None, 0, target=c.Coordinator())
    number = peer1.transfer_payload(0, _value(c.Declare()))
    txn = peer1.expect(c.Disposition, first=number).state.txn_id
    peer1.attach_receiver(f"/queues/{name}-dead", 2, credit=9)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=2)
    expect_bodies(peer1, b"0", b"1")
    lost = c.Rejected(c.Error("app:lost", "no such customer"))
    for first, state in ((0, modified(x_new=1)), (1, lost)):
        wrapped = c.TransactionalState(txn, state)
        peer1.send(c.Disposition(True, first, None, True, wrapped))
    number = peer1.transfer_payload(0, _value(c.Discharge(txn, False)))
    found = [peer1.next(), peer1.next()]
    transfers = [each for each in found if isinstance(each.value, c.Transfer)]
    assert len(transfers) == 1
    death = sections_of(transfers[0]).message_annotations()["x-opt-deaths"][0]
    assert (death["condition"], death["description"]) == ("app:lost", "no such customer")
    peer1.give(1, 1, delivery_count=2)
    annotations = sections_of(expect_bodies(peer1, b"0")[0]).message_annotations()
    assert annotations["x-new"] == 1


def _value(value: Any) -> bytes:
    return b"\0\x53\x77" + value.encoded()


# --- counts -------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#130", "1.0#143", "1.0#142")
@pytest.mark.parametrize("kind", KINDS)
def test_every_queue_counts_deliveries_that_have_failed(
    peer: Peer, peer1: Peer1, name: str, kind: str
) -> None:
    declare(peer, name, **KINDS[kind])
    fill(peer1, name, 1)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=99)
    header = sections_of(expect_bodies(peer1, b"0")[0]).header()
    assert (header.first_acquirer, header.delivery_count) == (True, 0)
    failed = c.Modified(delivery_failed=True)
    changed = c.Modified(True, message_annotations={Symbol("x-new"): 1})
    states: list[tuple[Any, int]] = [(failed, 1), (c.Released(), 1), (changed, 2), (failed, 3)]
    for number, (state, count) in enumerate(states):
        peer1.send(c.Disposition(True, number, None, True, state))
        header = sections_of(expect_bodies(peer1, b"0")[0]).header()
        assert (header.first_acquirer, header.delivery_count) == (False, count)
    # What a link leaves unsettled has failed.
    peer1.send(c.Detach(1, True))
    peer1.expect(c.Detach)
    peer1.attach_receiver(f"/queues/{name}", 3, credit=1)
    assert sections_of(expect_bodies(peer1, b"0")[0]).header().delivery_count == 4


@pytest.mark.rule("1.0#130", "1.0#143", "1.0#142")
@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_letter_goes_on_counting(peer: Peer, peer1: Peer1, name: str, kind: str) -> None:
    declare(peer, name, **KINDS[kind])
    fill(peer1, name, 1)
    peer1.attach_receiver(f"/queues/{name}-dead", 2, credit=99)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=99)
    failed = c.Modified(delivery_failed=True)
    for number, state in enumerate((failed, failed, c.Rejected())):
        expect_bodies(peer1, b"0")
        peer1.send(c.Disposition(True, number, None, True, state))
    # Stored again with other annotations it keeps the count, too.
    changed = c.Modified(True, message_annotations={Symbol("x-new"): 1})
    for number, state in ((3, changed), (4, failed)):
        header = sections_of(expect_bodies(peer1, b"0")[0]).header()
        assert (header.first_acquirer, header.delivery_count) == (False, number)
        peer1.send(c.Disposition(True, number, None, True, state))
    expect_bodies(peer1, b"0")
    peer1.send(c.Detach(2, True))
    peer1.expect(c.Detach)
    # The same in the words of 0-9-1; the end of the link was a failure, too.
    assert peer.get(f"{name}-dead").properties.headers["x-delivery-count"] == 6


def test_a_dead_letter_with_blind_keys_goes_on_counting(
    peer: Peer, peer1: Peer1, name: str
) -> None:
    letters = {"x-dead-letter-exchange": "amq.direct"}
    peer.send(QueueDeclare(queue=name, durable=True, arguments=letters))
    peer.expect(QueueDeclareOk)
    peer.send(QueueDeclare(queue=f"{name}-dead", durable=True))
    peer.expect(QueueDeclareOk)
    peer.send(QueueBind(queue=f"{name}-dead", exchange="amq.direct", routing_key=name))
    peer.expect(QueueBindOk)
    peer.publish("", name, b"0", BasicProperties(headers={"BCC": ["none"]}))
    peer1.attach_receiver(f"/queues/{name}", 1, credit=99)
    for number, state in enumerate((c.Modified(delivery_failed=True), c.Rejected())):
        expect_bodies(peer1, b"0")
        peer1.send(c.Disposition(True, number, None, True, state))
    peer1.attach_receiver(f"/queues/{name}-dead", 2, credit=1)
    assert sections_of(expect_bodies(peer1, b"0")[0]).header().delivery_count == 2


@pytest.mark.rule("1.0#130")
@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_letter_that_nobody_got_before_has_no_first_acquirer(
    peer: Peer, peer1: Peer1, name: str, kind: str
) -> None:
    declare(peer, name, **KINDS[kind])
    peer1.attach_receiver(f"/queues/{name}-dead", 2, credit=1)
    peer.publish("", name, b"0", BasicProperties(expiration="0"))
    header = sections_of(expect_bodies(peer1, b"0")[0]).header()
    assert (header.first_acquirer, header.delivery_count) == (False, 0)


def test_failures_before_its_death_do_not_use_up_the_limit_of_the_next_queue(
    peer: Peer, peer1: Peer1, name: str
) -> None:
    quorum = {"x-queue-type": "quorum", "x-delivery-limit": 1}
    peer.send(QueueDeclare(queue=f"{name}-end", durable=True))
    peer.expect(QueueDeclareOk)
    for own_name, next_name in ((name, f"{name}-dead"), (f"{name}-dead", f"{name}-end")):
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": next_name}
        peer.send(QueueDeclare(queue=own_name, durable=True, arguments=letters | quorum))
        peer.expect(QueueDeclareOk)
    fill(peer1, name, 1)
    for handle, address in enumerate((f"{name}-end", f"{name}-dead", name)):
        peer1.attach_receiver(f"/queues/{address}", handle + 1, credit=99)
    counts = []
    for number in range(5):
        counts.append(sections_of(expect_bodies(peer1, b"0")[0]).header().delivery_count)
        state = c.Modified(delivery_failed=True) if number < 4 else c.Accepted()
        peer1.send(c.Disposition(True, number, None, True, state))
    assert counts == [0, 1, 2, 3, 4]


# --- reasons ------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#141")
@pytest.mark.parametrize("kind", KINDS)
def test_the_error_of_rejected_is_in_the_history_of_the_dead_letter(
    peer: Peer, peer1: Peer1, name: str, kind: str
) -> None:
    declare(peer, name, **KINDS[kind])
    fill(peer1, name, 2)
    peer1.attach_receiver(f"/queues/{name}-dead", 2, credit=1)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=9)
    expect_bodies(peer1, b"0", b"1")
    error = c.Error("app:no-customer", "customer 7 does not exist")
    peer1.send(c.Disposition(True, 0, 1, True, c.Rejected(error)))
    death = sections_of(expect_bodies(peer1, b"0")[0]).message_annotations()["x-opt-deaths"][0]
    assert death["reason"] == "rejected"
    assert death["condition"] == "app:no-customer"
    assert isinstance(death["condition"], Symbol)
    assert death["description"] == "customer 7 does not exist"
    # The same in the words of 0-9-1.
    found = peer.get(f"{name}-dead").properties.headers["x-death"][0]
    assert found["reason"] == "rejected"
    assert found["condition"] == "app:no-customer"
    assert found["description"] == "customer 7 does not exist"


def test_only_the_last_reason_is_kept(peer: Peer, peer1: Peer1, name: str) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name}
    peer.send(QueueDeclare(queue=name, arguments=arguments))
    peer.expect(QueueDeclareOk)
    fill(peer1, name, 1)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=9)
    for number, error in enumerate([c.Error("a:a", "first"), c.Error("b:b"), None]):
        expect_bodies(peer1, b"0")
        peer1.send(c.Disposition(True, number, None, True, c.Rejected(error)))
    death = sections_of(expect_bodies(peer1, b"0")[0]).message_annotations()["x-opt-deaths"][0]
    assert death["count"] == 3
    assert not {"condition", "description"} & set(death)


def test_a_dead_letter_at_least_once_has_its_reason_when_it_is_sent_again(
    memory: MemorySite, memory1: Connect1, name: str
) -> None:
    peer = memory1().open().begin()
    vhost = memory.broker.vhosts["/"]
    arguments = {
        "x-queue-type": "quorum",
        "x-overflow": "reject-publish",
        "x-dead-letter-strategy": "at-least-once",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": f"{name}-dead",
    }
    queue = vhost.declare_queue(name, durable=True, arguments=arguments)
    fill(peer, name, 1)
    peer.attach_receiver(f"/queues/{name}", 1, credit=1)
    expect_bodies(peer, b"0")
    peer.send(c.Disposition(True, 0, None, True, c.Rejected(c.Error("a:a"))))
    # The first attempt found no queue.
    dead = vhost.declare_queue(f"{name}-dead", durable=True)
    queue.tick()
    found = dead.get()
    assert found is not None
    assert headers_of(found[0])["x-death"][0]["condition"] == "a:a"
