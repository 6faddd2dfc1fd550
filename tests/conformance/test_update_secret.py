"""connection.update-secret: the connection goes on with what its user may do now."""

from __future__ import annotations

from harebell.auth.permissions import Permissions
from harebell.wire.v09 import methods as m
from tests.conformance.conftest import Connect
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite


def test_a_new_secret_is_accepted_and_nothing_else_happens(peer: Peer) -> None:
    peer.queue("q")
    peer.consume("q", no_ack=True)
    peer.ask(m.ConnectionUpdateSecret(b"whatever", "it was old"), 0)
    peer.publish("", "q", b"body")
    peer.expect_delivery(b"body")


def test_before_the_connection_is_open_it_is_out_of_place(connect: Connect) -> None:
    peer = connect()
    peer.greet()
    peer.log_in()
    peer.send(m.ConnectionUpdateSecret(b"secret", "early"))
    peer.expect_closed()


def test_consumers_of_queues_that_may_not_be_read_any_more_are_cancelled(
    memory: MemorySite, connect_memory: Connect
) -> None:
    user = memory.users.add("reader", "reader", vhosts=("/",))
    peer = connect_memory().open(
        user="reader", password="reader", capabilities=["consumer_cancel_notify"]
    )
    for queue in ("open", "closed"):
        peer.queue(queue)
        peer.consume(queue, consumer_tag=queue, no_ack=True)
    user.permissions["/"] = Permissions(".*", ".*", "^open$")
    peer.send(m.ConnectionUpdateSecret(b"secret", "less"))
    peer.expect(m.BasicCancel, consumer_tag="closed", nowait=True)
    peer.expect(m.ConnectionUpdateSecretOk)
    for queue in ("closed", "open"):
        peer.publish("", queue, queue.encode())
    peer.expect_delivery(b"open", consumer_tag="open")
    assert memory.broker.vhosts["/"].queues["closed"].ready_count() == 1
