"""Messages over AMQP, HTTP and the command line: for every right and value the outcome is the same.

Each case runs twice, in two vhosts of one broker that are alike: over AMQP in one and over HTTP in
the other. Then the answers are compared, texts of refusals included, and all messages of all
queues, byte for byte.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harebell.admin.catalog import commands
from harebell.client import blocking
from harebell.client.errors import (
    AMQPError,
    ClientClosed,
    PublishNacked,
    PublishReturned,
    ReplyError,
)
from harebell.management.control.client import ControlError, ask_command, ask_rows
from harebell.management.http.routes import routes_of
from harebell.wire.json_values import given_table
from tests.patience import eventually
from tests.ports import free_port
from tests.running import RunningBroker, running_broker
from tests.unit.management.http.asking import Api, segment

AMQP, HTTP = "by-amqp", "by-http"
VHOSTS = (AMQP, HTTP)
QUEUES = ("q", "other", "dead", "full", "quorum")
RIGHTS = ("none", "configure", "read", "write", "all", "topic", "impersonator")
MESSAGE_MAX = 3_000

_OF_QUEUE = "/api/queues/{vhost}/{name}"
COMPARED = {
    "POST /api/exchanges/{vhost}/{name}/publish": "publish",
    f"POST {_OF_QUEUE}/get": "get",
    f"GET {_OF_QUEUE}/browse": "browse",
    **{f"POST {_OF_QUEUE}/{verb}": verb for verb in ("move", "copy", "remove", "retry", "discard")},
    f"DELETE {_OF_QUEUE}/contents": "purge",
}
"""The routes of messages, and what is compared below."""
HTTP_ALONE = {
    f"POST {_OF_QUEUE}/actions",
    f"POST {_OF_QUEUE}/waiting/{{offset}}/release",
    f"DELETE {_OF_QUEUE}/waiting/{{offset}}",
}
"""What does nothing, for RabbitMQ's clients, and what AMQP has no word for."""


def test_every_route_of_messages_is_compared() -> None:
    found = {
        f"{route.method} {route.path}"
        for route in routes_of(commands())
        if route.command.run.__module__ == "harebell.admin.commands.messages"
        or (route.path.startswith(f"{_OF_QUEUE}/") and route.method != "GET")
    }
    assert found == {*COMPARED, *HTTP_ALONE}


@dataclass(frozen=True)
class Publish:
    """A publish.

    Args:
        exchange: where to.
        key: the routing key.
        properties: as JSON has them.
        body: the body.
    """

    exchange: str = ""
    key: str = "q"
    properties: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b"body"


def headers(**given: Any) -> dict[str, Any]:
    return {"headers": given}


PUBLISHES = [
    Publish(),
    Publish(key="nowhere"),
    Publish("missing"),
    Publish("inside"),
    Publish("topics", "mine.1"),
    Publish("topics", "others.1"),
    Publish("topics", "mine.1", headers(CC=["others.1"])),
    Publish("topics", "mine.1", headers(BCC=["mine.2"])),
    Publish("matching", "", headers(x=1)),
    Publish("matching", "", headers(x=True)),
    Publish("alternate", "unbound"),
    Publish("later", "q", headers(**{"x-delay": 0})),
    Publish("later", "q", headers(**{"x-delay": "soon"})),
    Publish("later", "q", {"expiration": "abc"}),
    Publish(key="full"),
    Publish(key="full", properties={"priority": 9}),
    Publish(key="quorum", properties={"delivery_mode": 2}),
    Publish(body=b"x" * MESSAGE_MAX),
    Publish(body=b"x" * (MESSAGE_MAX + 1)),
    Publish(body=b"\xff\x00"),
    Publish(body=b""),
    Publish(key="k" * 255),
    *(
        Publish(properties={"expiration": text})
        for text in ("600000", "abc", "-1", "1.5", "", "+700000")
    ),
    Publish(properties={"expiration": "315360000001"}),
    *(Publish(properties={"timestamp": at}) for at in (0, 1_700_000_000_000, 2**64 - 1)),
    *(Publish(properties={"user_id": name}) for name in ("guest", "writer", "")),
    Publish(properties={"reply_to": "amq.rabbitmq.reply-to"}),
    Publish(properties={"reply_to": "q", "correlation_id": "c", "type": "t", "app_id": "a"}),
    Publish(properties={"content_type": "", "content_encoding": "gzip", "message_id": "m"}),
    *(Publish(properties=headers(CC=given)) for given in (["other"], "other", 5, [1, "other"], [])),
    *(Publish(properties=headers(BCC=given)) for given in (["other"], {"a": 1}, None)),
    Publish(properties=headers(n=2**63 - 1, f=0.5, t=True, v=None, s="träge", a=[1, ["b"]], o={})),
    Publish(properties=headers(**{"$odd": 1, "x-death": "none"})),
    Publish(properties=headers(when={"$timestamp": 2**63}, octets={"$binary": "/w=="})),
]


@dataclass(frozen=True)
class Act:
    """What is done with the message of a queue.

    Args:
        verb: browse, remove, purge, move, copy, discard or retry.
        queue: whose message.
        exchange: where it goes.
        key: with which routing key.
    """

    verb: str
    queue: str = "q"
    exchange: str = ""
    key: str = "other"


class Outcome(NamedTuple):
    """What came of it.

    Args:
        done: the number of messages.
        refusal: the text of the refusal; "" without one.
    """

    done: int
    refusal: str


MOVING = ("move", "copy")
SOCKET = "by-socket"
SOURCES = ("q", "quorum", "owned", "missing")
TARGETS = (
    *(("", "other"), ("", "missing"), ("", "owned"), ("missing", "k"), ("inside", "k")),
    *(("topics", "mine.1"), ("topics", "others.1"), ("alternate", "mine.2"), ("matching", "k")),
)
UNROUTABLE = Outcome(0, "")
ACTS = [
    *(Act(verb, queue) for verb in ("browse", "remove", "purge") for queue in SOURCES),
    *(Act("discard", queue) for queue in SOURCES),
    *(Act("retry", queue) for queue in ("dead", "owned", "missing")),
    *(Act(verb, queue) for verb in MOVING for queue in SOURCES),
    *(Act(verb, "q", exchange, key) for verb in MOVING for exchange, key in TARGETS),
    Act("purge", "stream"),
]
"""Of streams there is no basic.get, and into exchanges that keep messages a job publishes none."""


class Doors:
    """A broker with two vhosts that are alike.

    Args:
        broker: the broker.
        api: its HTTP API.
    """

    def __init__(self, broker: RunningBroker, api: Api) -> None:
        self.broker = broker
        self.api = api
        self._links: dict[tuple[str, str], blocking.Connection] = {}
        for vhost in VHOSTS:
            api.done("PUT", f"/api/vhosts/{vhost}")
            everything = dict.fromkeys(("configure", "write", "read"), ".*")
            api.done("PUT", f"/api/permissions/{vhost}/guest", everything)
            self._fill(self.channel(vhost))
        for right in RIGHTS:
            self._add_user(right)

    def _fill(self, channel: blocking.Channel) -> None:
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.declare_queue("q", durable=True, arguments=dead)
        channel.declare_queue("other", durable=True)
        channel.declare_queue("dead", durable=True)
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        channel.declare_queue("full", durable=True, arguments=full)
        channel.declare_queue("quorum", durable=True, arguments={"x-queue-type": "quorum", **dead})
        channel.declare_queue("stream", durable=True, arguments={"x-queue-type": "stream"})
        channel.declare_queue("owned", exclusive=True)
        channel.declare_exchange("topics", "topic")
        channel.bind_queue("q", "topics", "#")
        channel.declare_exchange("matching", "headers")
        channel.bind_queue("q", "matching", "", arguments={"x": 1})
        channel.declare_exchange("inside", "fanout", internal=True)
        channel.declare_exchange("alternate", "direct", arguments={"alternate-exchange": "topics"})
        later = {"x-delayed-type": "direct"}
        channel.declare_exchange("later", "x-delayed-message", arguments=later)
        channel.bind_queue("q", "later", "q")

    def _add_user(self, right: str) -> None:
        tags = "management,impersonator" if right == "impersonator" else "management"
        self.api.done("PUT", f"/api/users/{right}", {"password": "p", "tags": tags})
        all_of = right in ("all", "topic", "impersonator")
        patterns = {
            action: ".*" if all_of or right == action else "^none$"
            for action in ("configure", "write", "read")
        }
        for vhost in VHOSTS:
            self.api.done("PUT", f"/api/permissions/{vhost}/{right}", patterns)
            if right == "topic":
                body = {"exchange": "topics", "write": "^mine", "read": "^mine"}
                self.api.done("PUT", f"/api/topic-permissions/{vhost}/topic", body)

    def channel(self, vhost: str, user: str = "guest") -> blocking.Channel:
        """Open a channel of a user."""
        link = self._links.get((vhost, user))
        try:
            return connected(link).channel()
        except AMQPError:
            login = "guest:guest" if user == "guest" else f"{user}:p"
            host = self.broker.address().removeprefix("amqp://")
            link = blocking.connect(f"amqp://{login}@{host}/{vhost}")
            self._links[vhost, user] = link
            return link.channel()

    def close(self) -> None:
        for link in self._links.values():
            link.close()

    def publish(self, user: str, case: Publish) -> tuple[Any, Any]:
        """Publish over AMQP and over HTTP; both outcomes."""
        return self._by_amqp(user, case), self._by_http(user, case)

    def _by_amqp(self, user: str, case: Publish) -> Any:
        given = dict(case.properties)
        if "headers" in given:
            given["headers"] = given_table(given["headers"])
        channel = self.channel(AMQP, user)
        try:
            channel.publish(
                case.body, exchange=case.exchange, routing_key=case.key, mandatory=True, **given
            )
        except (PublishNacked, PublishReturned):
            return False
        except ReplyError as error:
            return text_of(error)
        finally:
            shut(channel)
        return True

    def _by_http(self, user: str, case: Publish) -> Any:
        body = {
            "routing_key": case.key,
            "payload": base64.b64encode(case.body).decode(),
            "payload_encoding": "base64",
            "properties": dict(case.properties),
        }
        name = segment(case.exchange or "amq.default")
        path = f"/api/exchanges/{HTTP}/{name}/publish"
        answer = self.api.ask("POST", path, body, user=login_of(user))
        if answer.status == 200:
            return answer.json["routed"]
        assert answer.status in (400, 401, 404), answer
        return answer.json["reason"].replace(HTTP, AMQP)

    def get(self, user: str, queue: str, mode: str) -> tuple[Any, Any]:
        """Get a message over AMQP and over HTTP, and settle it; both outcomes."""
        channel = self.channel(AMQP, user)
        found: Any
        try:
            delivery = channel.get(queue)
            found = None
            if delivery is not None:
                body = delivery.body.decode()
                found = (body, delivery.redelivered, delivery.message_count)
                if mode == "ack_requeue_false":
                    delivery.ack()
                elif mode == "ack_requeue_true":
                    delivery.nack(requeue=True)
                else:
                    delivery.reject(requeue=mode == "reject_requeue_true")
        except ReplyError as error:
            found = text_of(error)
        finally:
            shut(channel)
        answer = self.api.ask(
            "POST",
            f"/api/queues/{HTTP}/{segment(queue)}/get",
            {"count": 1, "ackmode": mode, "encoding": "auto"},
            user=login_of(user),
        )
        if answer.status != 200:
            assert answer.status in (400, 401, 404), answer
            return found, answer.json["reason"].replace(HTTP, AMQP)
        (row,) = answer.json or (None,)
        if row is None:
            return found, None
        return found, (row["payload"], row["redelivered"], row["message_count"])

    def act(self, door: str, user: str, act: Act) -> Outcome:
        """Do something with the messages of a queue, by one of the doors."""
        if door == AMQP:
            return self._act_by_amqp(user, act)
        fields: dict[str, Any] = {} if act.verb == "purge" else {"where": ""}
        if act.exchange == "" and act.verb in MOVING:
            fields["to_queue"] = act.key
        elif act.verb == "discard":
            fields["hold"] = act.key
        elif act.verb in MOVING:
            fields |= {"to_exchange": act.exchange, "routing_key": act.key}
        if door == HTTP:
            return self._act_by_http(user, act, fields)
        return self._act_by_socket(act, fields)

    def _act_by_amqp(self, user: str, act: Act) -> Outcome:
        """Get a message, publish it, and settle it; or purge."""
        channel = self.channel(AMQP, user)
        try:
            if act.verb == "purge":
                return Outcome(channel.purge_queue(act.queue), "")
            delivery = channel.get(act.queue)
            assert delivery is not None
            if act.verb in ("browse", "remove"):
                (delivery.ack if act.verb == "remove" else delivery.nack)()
                return Outcome(1, "")
            key = "q" if act.verb == "retry" else act.key
            channel.publish(delivery.body, exchange=act.exchange, routing_key=key, mandatory=True)
            (delivery.nack if act.verb == "copy" else delivery.ack)()
            return Outcome(1, "")
        except (PublishNacked, PublishReturned):
            return Outcome(0, "")
        except ReplyError as error:
            return Outcome(0, text_of(error))
        finally:
            shut(channel)

    def _act_by_http(self, user: str, act: Act, fields: dict[str, Any]) -> Outcome:
        path = f"/api/queues/{HTTP}/{act.queue}"
        login = login_of(user)
        if act.verb == "purge":
            answer = self.api.ask("DELETE", f"{path}/contents", user=login)
        elif act.verb == "browse":
            answer = self.api.ask("GET", f"{path}/browse?limit=1", user=login)
        else:
            answer = self.api.ask("POST", f"{path}/{act.verb}", fields, user=login)
        if answer.status >= 300:
            assert answer.status in (400, 401, 404), answer
            return Outcome(0, plain(answer.json["reason"]))
        if act.verb == "browse":
            return Outcome(len(answer.body.splitlines()), "")
        if act.verb == "purge":
            return Outcome(1, "")
        return self._ended(answer.json["id"])

    def _act_by_socket(self, act: Act, fields: dict[str, Any]) -> Outcome:
        named = {"vhost": AMQP, "name": act.queue, **fields}
        try:
            if act.verb == "browse":
                rows = ask_rows(self.broker.data_dir, "queues.browse", {**named, "limit": 1})
                return Outcome(sum(map(len, rows)), "")
            answer = ask_command(self.broker.data_dir, f"queues.{act.verb}", named)
        except ControlError as error:
            return Outcome(0, plain(str(error).partition(" refused: ")[2]))
        return Outcome(1, "") if act.verb == "purge" else self._ended(answer["id"])

    def _ended(self, job: int) -> Outcome:
        """Wait for the end of a job."""
        assert eventually(lambda: self.api.get(f"/api/jobs/{job}")["state"] != "running")
        row = self.api.get(f"/api/jobs/{job}")
        return Outcome(row["done"], plain(row["problem"]))

    def fill(self, vhost: str, queue: str) -> None:
        """Put a message into a queue, into `dead` by way of q."""
        channel = self.channel(vhost)
        if queue in ("q", "quorum", "stream", "dead"):
            channel.publish(b"m", exchange="", routing_key="q" if queue == "dead" else queue)
        if queue == "dead":
            delivery = channel.get("q")
            assert delivery is not None
            delivery.reject(requeue=False)
        shut(channel)

    def taken(self, vhost: str) -> dict[str, list[Any]]:
        """Take all messages of all queues; what each of them is."""
        found: dict[str, list[Any]] = {}
        channel = self.channel(vhost)
        for queue in QUEUES:
            found[queue] = []
            while (delivery := channel.get(queue, no_ack=True)) is not None:
                headers = {
                    # The times of dead letters differ, and so do the names of the vhosts.
                    name: value
                    for name, value in delivery.headers.items()
                    if name != "x-death"
                }
                raw = b"" if "x-death" in delivery.headers else delivery.encoded.raw
                place = (delivery.exchange, delivery.routing_key, delivery.redelivered)
                found[queue].append((*place, raw, repr(headers), delivery.body))
        shut(channel)
        return found

    def compare(self) -> dict[str, list[Any]]:
        """Compare the messages in both vhosts, and return those in one of them."""
        by_amqp, by_http = (self.taken(vhost) for vhost in VHOSTS)
        assert by_http == by_amqp
        return by_http


def text_of(error: ReplyError) -> str:
    """The text of an error behind the name of its code."""
    return error.text.partition(" - ")[2] or error.text


def plain(text: str) -> str:
    """A refusal without the name of the vhost, and without what the command line adds."""
    return text.replace(HTTP, AMQP).partition(": `harebell")[0]


def connected(link: blocking.Connection | None) -> blocking.Connection:
    """Return a connection, if there is one."""
    if link is None:
        raise ClientClosed("there is none yet")
    return link


def login_of(user: str) -> str:
    return "guest:guest" if user == "guest" else f"{user}:p"


def shut(channel: blocking.Channel) -> None:
    # The broker may have closed it, or its connection.
    with suppress(AMQPError):
        channel.close()


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    port = free_port()
    flags = ("--management-port", str(port), "--message-max-bytes", str(MESSAGE_MAX))
    with running_broker(*flags) as broker:
        found = Doors(broker, Api(port))
        yield found
        found.close()


@pytest.mark.parametrize("right", RIGHTS)
def test_a_publish_over_http_has_the_outcome_of_one_over_amqp(doors: Doors, right: str) -> None:
    for case in PUBLISHES:
        by_amqp, by_http = doors.publish(right, case)
        assert by_http == by_amqp, case
        doors.compare()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
    | st.builds(lambda ms: {"$timestamp": ms}, st.integers(0, 2**64 - 1))
    | st.builds(lambda data: {"$binary": base64.b64encode(data).decode()}, st.binary(max_size=9)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
SHORT = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
NAMES = ("content_type", "correlation_id", "expiration", "message_id", "type", "app_id")
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(NAMES, SHORT),
        "expiration": st.text("+-0123456789 .e", max_size=14) | SHORT,
        "timestamp": st.integers(0, 2**64 - 1),
        "priority": st.integers(0, 255),
        "delivery_mode": st.integers(0, 255),
        "headers": st.dictionaries(
            st.sampled_from(("CC", "BCC", "x-delay", "x-death")) | SHORT,
            JSON,
            min_size=1,
            max_size=4,
        ),
    },
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(("", "topics", "matching", "later")),
    st.sampled_from(("q", "mine.1", "")) | SHORT,
    PROPERTIES,
    st.binary(max_size=50),
)
def test_generated_messages_arrive_over_http_as_over_amqp(
    doors: Doors, exchange: str, key: str, properties: dict[str, Any], body: bytes
) -> None:
    # What expires at once is not there for as long twice.
    if properties.get("expiration", "")[-1:].isdecimal():
        properties["expiration"] += "00000"
    by_amqp, by_http = doors.publish("all", Publish(exchange, key, properties, body))
    assert by_http == by_amqp
    doors.compare()


@pytest.mark.parametrize("right", RIGHTS)
@pytest.mark.parametrize(
    "mode", ["ack_requeue_false", "ack_requeue_true", "reject_requeue_true", "reject_requeue_false"]
)
def test_a_get_over_http_has_the_outcome_of_one_over_amqp(
    doors: Doors, right: str, mode: str
) -> None:
    for queue in ("q", "quorum", "stream", "owned", "missing"):
        if queue in QUEUES:
            for text in (b"1", b"2"):
                doors.publish("all", Publish(key=queue, body=text))
        for _ in range(3):
            by_amqp, by_http = doors.get(right, queue, mode)
            assert by_http == by_amqp, queue
        doors.compare()


def tried(doors: Doors, doors_: tuple[str, str], user: str, act: Act) -> tuple[Outcome, Outcome]:
    """Do the same by two doors; what is in the queues is then the same."""
    for vhost in VHOSTS:
        doors.fill(vhost, act.queue)
    one, other = (doors.act(door, user, act) for door in doors_)
    found = [
        {queue: [each[-1] for each in messages] for queue, messages in doors.taken(vhost).items()}
        for vhost in VHOSTS
    ]
    assert found[0] == found[1], act
    return one, other


@pytest.mark.parametrize("right", RIGHTS)
def test_browsing_purges_and_jobs_have_the_outcome_of_their_steps_over_amqp(
    doors: Doors, right: str
) -> None:
    for act in ACTS:
        by_amqp, by_http = tried(doors, VHOSTS, right, act)
        if by_amqp == UNROUTABLE:
            # A return has no text of its own.
            assert (by_http.done, by_http.refusal != "") == (0, True), act
        else:
            assert by_http == by_amqp, act


def test_the_operator_has_the_outcome_of_an_administrator(doors: Doors) -> None:
    for act in ACTS:
        by_socket, by_http = tried(doors, (SOCKET, HTTP), "guest", act)
        if act == Act("purge", "owned"):
            # As with rabbitmqctl, the operator purges exclusive queues of others.
            assert (by_socket, by_http.done) == (Outcome(1, ""), 0)
        else:
            assert by_socket == by_http, act


def test_a_user_without_permissions_in_a_vhost_cannot_touch_its_messages(doors: Doors) -> None:
    doors.api.done("PUT", "/api/users/stranger", {"password": "p", "tags": "management"})
    for act in ACTS:
        doors.fill(HTTP, act.queue)
        with pytest.raises(AMQPError, match="access to vhost 'by-amqp' refused"):
            doors.act(AMQP, "stranger", act)
        by_http = doors.act(HTTP, "stranger", act)
        assert by_http == Outcome(0, "User not authorised to access virtual host"), act
        kept = doors.taken(HTTP)[act.queue] if act.queue in QUEUES else []
        assert len(kept) == (act.queue in QUEUES), act


def test_a_publish_by_any_door_is_in_a_history(doors: Doors) -> None:
    for bound in (0, 1):
        for vhost in VHOSTS:
            channel = doors.channel(vhost)
            if not bound:
                channel.declare_exchange("history", "x-recent-history")
        assert doors.publish("all", Publish("history", "k")) == (bool(bound),) * 2
        for vhost in VHOSTS:
            name = f"late-{bound}"
            channel = doors.channel(vhost)
            channel.declare_queue(name)
            channel.bind_queue(name, "history", "")
            assert channel.declare_queue(name).message_count == bound + 1
            shut(channel)
