"""The node `$cbs`: tokens of clients."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.auth.permissions import Permissions
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import Sections, data_section, encode_message, split, value_section
from harebell.wire.v1.values import Int
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1

_PUT = {"operation": "put-token", "type": "jwt", "name": "amqp://broker"}
_REQUESTS, _ANSWERS = 0, 1


def attach(peer: Peer1, reply_to: str = "replies") -> None:
    """Attach both links, of different names, as the clients do."""
    peer.attach_receiver("$cbs", _ANSWERS, credit=10, target=c.Target(reply_to))
    peer.attach_sender("$cbs", _REQUESTS)


def ask(
    peer: Peer1, claims: dict[str, Any], body: bytes, reply_to: str | None = "replies"
) -> tuple[int, str]:
    """Send a request, which is accepted; return status-code and status-description."""
    properties = c.Properties("m", reply_to=reply_to)
    number = peer.transfer_payload(_REQUESTS, encode_message(body, None, None, properties, claims))
    answer = peer.expect_transfer(handle=_ANSWERS, settled=True)
    peer.expect(c.Disposition, role=True, first=number, settled=True, state=c.Accepted())
    sections = Sections(split(answer.payload)[0])
    assert sections.properties().correlation_id == "m"
    status = sections.application_properties()
    assert type(status["status-code"]) is Int
    return status["status-code"], status["status-description"]


@pytest.mark.parametrize("kind", ["jwt", "amqp:jwt"])
@pytest.mark.parametrize("body", [value_section("token"), data_section(b"token")])
def test_a_token_is_accepted(peer1: Peer1, kind: str, body: bytes) -> None:
    attach(peer1)
    assert ask(peer1, _PUT | {"type": kind}, body) == (202, "Accepted")


@pytest.mark.parametrize(
    ("changes", "body", "text"),
    [
        ({"operation": "delete-token"}, "t", "operation must be put-token"),
        ({"type": "servicebus.windows.net:sastoken"}, "t", "type must be jwt or amqp:jwt"),
        ({"name": True}, "t", "name must be string"),
        ({}, None, "the body must be a token"),
        ({}, "", "the body must be a token"),
    ],
)
def test_a_wrong_request_has_a_status_and_a_text(
    peer1: Peer1, changes: dict[str, Any], body: Any, text: str
) -> None:
    attach(peer1)
    status, description = ask(peer1, _PUT | changes, value_section(body))
    assert status == 400
    assert text in description


def test_an_answer_leaves_by_the_link_that_the_request_names(peer1: Peer1) -> None:
    peer1.attach_receiver("$cbs", 5, credit=10, target=c.Target("other"))
    attach(peer1)
    assert ask(peer1, _PUT, value_section("t"))[0] == 202


def test_a_request_without_a_link_for_its_answer_is_refused(peer1: Peer1) -> None:
    attach(peer1)
    properties = c.Properties("m", reply_to="elsewhere")
    peer1.transfer_payload(
        _REQUESTS, encode_message(value_section("t"), None, None, properties, _PUT)
    )
    peer1.expect_error(c.Detach, "amqp:precondition-failed")
    peer1.send(c.Detach(_REQUESTS, True))


def test_a_request_without_a_message_id_is_refused(peer1: Peer1) -> None:
    attach(peer1)
    properties = c.Properties(reply_to="replies")
    peer1.transfer_payload(
        _REQUESTS, encode_message(value_section("t"), None, None, properties, _PUT)
    )
    peer1.expect_error(c.Detach, "amqp:invalid-field", "message-id")
    peer1.send(c.Detach(_REQUESTS, True))


def test_a_new_token_ends_what_the_user_may_not_do_any_more(
    memory: MemorySite, memory1: Connect1
) -> None:
    owner = memory1().open().begin()
    owner.attach_sender("read-by-token")
    user = memory.users.add("reader", "secret", vhosts=("/",))
    user.permissions["/"] = Permissions("", "", ".*")
    peer1 = memory1().open(user="reader", password="secret").begin().begin(1)
    attach(peer1)
    peer1.attach_receiver("/queues/read-by-token", 0, channel=1)
    user.permissions["/"] = Permissions("", "", "")
    properties = c.Properties("m", reply_to="replies")
    peer1.transfer_payload(
        _REQUESTS,
        encode_message(value_section("t"), None, None, properties, _PUT),
        settled=True,
    )
    peer1.expect_error(c.End, "amqp:unauthorized-access", channel=1)
    peer1.send(c.End(), channel=1)
    peer1.expect_transfer(handle=_ANSWERS)


@pytest.mark.parametrize(
    "address", ["/exchanges/amq.fanout", "/exchanges/amq.fanout/k", "/queues/written-by-token"]
)
def test_a_new_token_ends_publishing_where_the_user_may_not_write_any_more(
    memory: MemorySite, memory1: Connect1, address: str
) -> None:
    owner = memory1().open().begin()
    owner.attach_sender("written-by-token")
    user = memory.users.add("writer", "secret", vhosts=("/",))
    user.permissions["/"] = Permissions("", ".*", "")
    peer1 = memory1().open(user="writer", password="secret").begin().begin(1).begin(2)
    attach(peer1)
    peer1.attach_sender(address, 0, channel=1)
    peer1.attach_sender(address, 1, channel=1)
    peer1.attach_sender(None, 0, channel=2)
    user.permissions["/"] = Permissions("", "", "")
    message = encode_message(
        value_section("t"), None, None, c.Properties("m", reply_to="replies"), _PUT
    )
    peer1.transfer_payload(_REQUESTS, message, settled=True)
    peer1.expect_error(c.End, "amqp:unauthorized-access", "write access to exchange", channel=1)
    peer1.send(c.End(), channel=1)
    peer1.expect_transfer(handle=_ANSWERS)


def test_connections_of_one_container_have_their_own_links(memory1: Connect1) -> None:
    peers = [memory1().open(container="one").begin() for _ in range(2)]
    for each in peers:
        each.attach_receiver("$cbs", _ANSWERS, name="$cbs", target=c.Target("replies"), credit=5)
        each.attach_sender("$cbs", _REQUESTS, name="$cbs")
    for each in peers:
        assert ask(each, _PUT, value_section("t"))[0] == 202
