"""What belongs to no version holds in transitional 0-10 too: permissions, policies, limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.auth.permissions import Permissions
from harebell.model.settings.policy import Policy
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.peer import Peer

Connect = Callable[[], Peer]


@pytest.fixture
def limited(memory: MemorySite, connect_memory: Connect) -> Peer:
    """A peer that may do everything with names that begin with "my", and nothing else."""
    owner = connect_memory().open()
    owner.queue("yours")
    owner.run(m.ExchangeDeclare("yours", "direct"))
    memory.users.add("small", "secret", vhosts=("/",))
    user = memory.users.get("small")
    assert user is not None
    user.permissions["/"] = Permissions("^my", "^my", "^my")
    peer = connect_memory().open(user="small", password="secret")
    peer.queue("my")
    return peer


@pytest.mark.parametrize(
    ("method", "action"),
    [
        (m.ExchangeDeclare("new", "direct"), "configure"),
        (m.ExchangeDelete("yours"), "configure"),
        (m.QueueDeclare("new"), "configure"),
        (m.QueueDelete("yours"), "configure"),
        (m.QueueBind("yours", "yours", "k"), "write"),
        (m.QueueBind("my", "yours", "k"), "read"),
        (m.QueueUnbind("my", "yours", "k"), "read"),
        (m.QueuePurge("yours"), "read"),
        (m.BasicConsume("yours"), "read"),
        (m.BasicGet("yours"), "read"),
    ],
    ids=str,
)
def test_an_act_without_permission_closes_the_channel(limited: Peer, method: m.Method, action: str):
    limited.send(method)
    limited.expect_channel_close(403, method.NAME, f"{action} access to")


def test_a_user_does_not_publish_where_it_may_not(limited: Peer):
    limited.publish("yours", "k", b"x")
    limited.expect_channel_close(403, "basic.publish", "write access to exchange 'yours'")


def test_a_user_does_not_speak_for_another(limited: Peer):
    limited.run(m.ExchangeDeclare("my", "direct"))
    limited.publish("my", "k", b"x", BasicProperties(user_id="guest"))
    limited.expect_channel_close(406, "basic.publish", "user_id")


def test_a_policy_limits_a_queue_and_sends_what_is_too_much_elsewhere(
    memory: MemorySite, memory_peer: Peer
):
    definition = {
        "max-length": 1,
        "dead-letter-exchange": "",
        "dead-letter-routing-key": "dead",
    }
    memory.broker.vhosts["/"].policies.put(Policy("p", "^q$", "queues", 0, definition))
    memory_peer.queue("dead")
    memory_peer.queue("q")
    memory_peer.publish("", "q", b"one")
    memory_peer.publish("", "q", b"two")
    assert memory_peer.get("dead", no_ack=True).body == b"one"
    assert memory_peer.get("q", no_ack=True).body == b"two"


def test_a_message_expires_by_its_own_property(memory: MemorySite, memory_peer: Peer):
    memory_peer.queue("q")
    memory_peer.publish("", "q", b"x", BasicProperties(expiration="500"))
    memory_peer.settle()
    memory.pass_time(2)
    memory_peer.send(m.BasicGet("q"))
    memory_peer.expect(m.BasicGetEmpty)


def test_an_expiration_that_is_no_number_closes_the_channel(memory_peer: Peer):
    memory_peer.queue("q")
    memory_peer.publish("", "q", b"x", BasicProperties(expiration="soon"))
    memory_peer.expect_channel_close(406, "basic.publish", "invalid expiration 'soon'")


def test_a_body_over_the_limit_closes_the_channel():
    site = MemorySite(message_max=1_000)
    peer = Peer(site, site.connect()).open()
    peer.queue("q")
    peer.publish("", "q", bytes(1_001))
    peer.expect_channel_close(406, "basic.publish", "message size 1001")


def test_further_keys_of_a_message_lead_to_their_queues(memory_peer: Peer):
    for queue in ("q", "copy", "blind"):
        memory_peer.queue(queue)
    headers = {"CC": ["copy"], "BCC": ["blind"]}
    memory_peer.publish("", "q", b"x", BasicProperties(headers=headers))
    for queue in ("q", "copy", "blind"):
        found = memory_peer.get(queue, no_ack=True)
        assert found.body == b"x"
        assert "BCC" not in (found.properties.headers or {})


def test_a_stream_is_read_from_its_beginning(memory_peer: Peer):
    memory_peer.queue("s", durable=True, arguments={"x-queue-type": "stream"})
    for number in range(3):
        memory_peer.publish("", "s", b"%d" % number)
    memory_peer.run(m.BasicQos(prefetch_count=10))
    memory_peer.consume("s", arguments={"x-stream-offset": "first"})
    for number in range(3):
        found = memory_peer.expect_delivery(b"%d" % number)
        assert found.properties.headers == {"x-stream-offset": number}
