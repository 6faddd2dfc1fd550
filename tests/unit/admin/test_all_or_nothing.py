"""Every change is stored, or it is not made: each of its writes is refused, one after the other."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any, NamedTuple

import pytest

from harebell.admin.accounts import user_fields
from harebell.admin.catalog import commands
from harebell.admin.definitions.entries import ImportTarget
from harebell.admin.definitions.exporter import document
from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, HarebellError, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.slices import at_once
from harebell.base.timers import Timers
from harebell.kernels.records import crc32c
from harebell.model.broker import Broker
from harebell.model.lease.group import Group
from harebell.model.lease.leases import Leases
from harebell.model.publishing.publishers import STAGED, Key
from harebell.model.publishing.stage_files import Piece
from harebell.model.publishing.stages import DIRECTORY, Stages
from harebell.model.queue.tracking import Tracking
from harebell.model.staging import Staging
from harebell.model.xa.branch import OPERATOR
from harebell.model.xa.states import Call
from harebell.model.xa.xid import Xid
from harebell.store.log.memory import MemoryStore
from harebell.store.tables import TABLES
from harebell.wire.v09 import methods as m
from tests.sim.disk import SimDisk
from tests.unit.admin.commands.site import Site
from tests.unit.admin.failing_store import LOGS, WHY, FailingDefinitions, FailingStore
from tests.unit.front.amqp_0_9_1.world import publish

Ask = tuple[str, dict[str, Any]]
_VHOST = {"vhost": "/"}
_POLICY: dict[str, Any] = {"name": "p", "pattern": ".*", "definition": {"max-length": 5}}
_QUEUE: Ask = ("queues.declare", {"name": "q"})
_EXCHANGE: Ask = ("exchanges.declare", {"name": "x", "type": "topic"})
_BOUND: Ask = ("bindings.add", {"source": "x", "destination": "q", "routing_key": "k"})
_CHAINED: Ask = (
    "bindings.add",
    {"source": "amq.topic", "destination": "x", "routing_key": "k", "to_exchange": True},
)
_ANN: Ask = ("users.add", {"name": "ann", "password": "secret", "tags": ["management"]})
_ALLOWED: Ask = (
    "permissions.set",
    {"user": "ann", "configure": "a", "write": "b", "read": "c", "vhost": "/"},
)
_TOPICS: Ask = (
    "topic-permissions.set",
    {"user": "ann", "exchange": "x", "write": "a", "read": "b", "vhost": "/"},
)
_OTHER: Ask = ("vhosts.add", {"name": "other", "description": "before", "tags": ["t"]})
_PARAMETER: dict[str, Any] = {"component": "c", "name": "n", "value": {"a": 1}}
_SUPER: Ask = ("streams.add-super", {"name": "s", "partitions": 2})
_STREAM: Ask = ("queues.declare", {"name": "q", "type": "stream"})
_TARGET: Ask = ("queues.declare", {"name": "other"})
_MOVE: Ask = ("queues.move", {"name": "q", "where": "", "to_queue": "other"})
_DISCARD: Ask = ("queues.discard", {"name": "q", "where": "", "reason": "w", "hold": "other"})
_DISCARDED: tuple[Ask, ...] = (_QUEUE, _TARGET, _DISCARD, ("jobs.cancel", {"id": 1}))
_IN_OTHER: tuple[Ask, ...] = tuple(
    (name, {**fields, "vhost": "other"})
    for name, fields in (
        _QUEUE,
        ("queues.declare", {"name": "s", "type": "stream"}),
        _EXCHANGE,
        ("exchanges.declare", {"name": "a", "type": "direct", "auto_delete": True}),
        _BOUND,
        ("bindings.add", {"source": "a", "destination": "q", "routing_key": "k"}),
        _CHAINED,
        ("policies.set", _POLICY),
        ("operator-policies.set", _POLICY),
        ("parameters.set", _PARAMETER),
        _ALLOWED,
        _TOPICS,
    )
)
_BETWEEN = {"vhost": "/", "source": "x", "kind": "q", "destination": "q"}


class Case(NamedTuple):
    """What is asked, and what was there before."""

    fields: dict[str, Any]
    before: tuple[Ask, ...] = ()


CASES: dict[str, list[Case]] = {
    "queues.declare": [Case({"name": "q"}), Case({"name": "q", "type": "quorum"})],
    "queues.delete": [Case({"name": "q"}, (_QUEUE, _EXCHANGE, _BOUND))],
    "exchanges.declare": [Case({"name": "x", "type": "topic"})],
    "exchanges.delete": [Case({"name": "x"}, (_QUEUE, _EXCHANGE, _BOUND, _CHAINED))],
    "bindings.add": [Case(_BOUND[1], (_QUEUE, _EXCHANGE)), Case(_CHAINED[1], (_EXCHANGE,))],
    "bindings.delete": [Case(_BOUND[1], (_QUEUE, _EXCHANGE, _BOUND))],
    "bindings.bind": [Case({**_BETWEEN, "routing_key": "k"}, (_QUEUE, _EXCHANGE))],
    "bindings.unbind": [Case({**_BETWEEN, "props": "k"}, (_QUEUE, _EXCHANGE, _BOUND))],
    "streams.add-super": [Case(_SUPER[1])],
    "streams.delete-super": [],
    "users.add": [Case(_ANN[1])],
    "users.delete": [Case({"name": "ann"}, (_ANN, _ALLOWED, _TOPICS))],
    "users.password": [Case({"name": "ann", "password": "new"}, (_ANN, _ALLOWED))],
    "users.tags": [Case({"name": "ann", "tags": ["monitoring"]}, (_ANN,))],
    "users.put": [
        Case({"name": "ann", "tags": "", "password": "new"}),
        Case({"name": "ann", "tags": "", "password_hash": ""}, (_ANN, _ALLOWED)),
    ],
    "users.bulk-delete": [Case({"users": ["ann"]}, (_ANN, _ALLOWED))],
    "permissions.set": [
        Case(_ALLOWED[1], (_ANN,)),
        Case({**_ALLOWED[1], "read": "d"}, (_ANN, _ALLOWED)),
    ],
    "permissions.clear": [Case({"user": "ann", **_VHOST}, (_ANN, _ALLOWED))],
    "topic-permissions.set": [Case(_TOPICS[1], (_ANN,))],
    "topic-permissions.clear": [Case({"user": "ann", **_VHOST}, (_ANN, _TOPICS))],
    "topic-permissions.delete-topic-permission": [
        Case({"user": "ann", "exchange": "x", **_VHOST}, (_ANN, _TOPICS))
    ],
    "limits.set": [
        Case({"vhost": "/", "max_queues": 5}),
        Case({"user": "ann", "max_channels": 5}, (_ANN,)),
    ],
    "limits.clear": [
        Case({"vhost": "/"}, (("limits.set", {"vhost": "/", "max_queues": 5}),)),
        Case({"user": "ann"}, (_ANN, ("limits.set", {"user": "ann", "max_channels": 5}))),
    ],
    "limits.put-vhost-limit": [Case({**_VHOST, "name": "max-queues", "value": 7})],
    "limits.delete-vhost-limit": [
        Case({**_VHOST, "name": "max-queues"}, (("limits.set", {**_VHOST, "max_queues": 5}),))
    ],
    "limits.put-user-limit": [Case({"user": "ann", "name": "max-channels", "value": 7}, (_ANN,))],
    "limits.delete-user-limit": [
        Case(
            {"user": "ann", "name": "max-channels"},
            (_ANN, ("limits.set", {"user": "ann", "max_channels": 5})),
        )
    ],
    "vhosts.add": [Case(_OTHER[1])],
    "vhosts.set": [Case({"name": "other", "description": "after"}, (_OTHER,))],
    "vhosts.protect": [Case({"name": "other"}, (_OTHER,))],
    "vhosts.unprotect": [Case({"name": "other"}, (_OTHER, ("vhosts.protect", {"name": "other"})))],
    "vhosts.delete": [
        Case({"name": "other"}, (_OTHER,)),
        Case({"name": "other"}, (_OTHER, _ANN, *_IN_OTHER)),
    ],
    "vhosts.put": [Case({"name": "other"}), Case({"name": "other", "tags": "u"}, (_OTHER,))],
    "trace.on": [Case(_VHOST)],
    "trace.off": [Case(_VHOST, (("trace.on", _VHOST),))],
    "policies.set": [Case(_POLICY)],
    "policies.clear": [Case({"name": "p"}, (("policies.set", _POLICY),))],
    "operator-policies.set": [Case(_POLICY)],
    "operator-policies.clear": [Case({"name": "p"}, (("operator-policies.set", _POLICY),))],
    "parameters.set": [Case(_PARAMETER)],
    "parameters.clear": [Case({"component": "c", "name": "n"}, (("parameters.set", _PARAMETER),))],
    "global-parameters.set": [Case({"name": "n", "value": 1})],
    "global-parameters.clear": [
        Case({"name": "n"}, (("global-parameters.set", {"name": "n", "value": 1}),))
    ],
    "service.set-cluster-name": [Case({"name": "c"})],
    "queues.move": [Case(_MOVE[1], (_QUEUE, _TARGET))],
    "queues.copy": [Case(_MOVE[1], (_QUEUE, _TARGET))],
    "queues.remove": [Case({"name": "q", "where": ""}, (_QUEUE,))],
    "queues.retry": [Case({"name": "q", "where": ""}, (_QUEUE,))],
    "queues.discard": [Case(_DISCARD[1], (_QUEUE, _TARGET))],
    "dead-letters.retry": [Case({"name": "q", "where": ""}, (_QUEUE,))],
    "dead-letters.discard": [Case({"name": "q", "where": ""}, (_QUEUE,))],
    "dead-letters.undo": [Case({"id": 1}, _DISCARDED)],
    "jobs.undo": [Case({"id": 1}, _DISCARDED)],
    "jobs.cancel": [Case({"id": 1}, (_QUEUE, _TARGET, _MOVE))],
    "definitions.import": [
        Case({"definitions": given}, before)
        for given, before in (
            ({"users": [{"name": "ann", "password_hash": ""}]}, (_ANN, _ALLOWED)),
            ({"users": [{"name": "bob", "password_hash": ""}]}, ()),
            ({"vhosts": [{"name": "other"}]}, ()),
            ({"vhosts": [{"name": "other", "description": "after"}]}, (_OTHER,)),
            ({"permissions": [_ALLOWED[1]]}, (_ANN,)),
            ({"topic_permissions": [_TOPICS[1]]}, (_ANN,)),
            ({"parameters": [{**_PARAMETER, **_VHOST}]}, ()),
            ({"global_parameters": [{"name": "n", "value": 1}]}, ()),
            ({"policies": [{**_POLICY, **_VHOST}]}, ()),
            ({"queues": [{"name": "q", **_VHOST}]}, ()),
            ({"exchanges": [{"name": "x", "type": "topic", **_VHOST}]}, ()),
            (
                {
                    "bindings": [
                        {
                            "source": "x",
                            "destination": "q",
                            "destination_type": "queue",
                            "routing_key": "k",
                            **_VHOST,
                        }
                    ]
                },
                (_QUEUE, _EXCHANGE),
            ),
        )
    ],
}
"""What every command that changes definitions is asked."""

CHANGES_NONE = (
    *("queues.purge", "queues.retry-now", "queues.queue-action", "queues.counters", "queues.get"),
    *("queues.release-waiting", "queues.cancel-waiting"),
    *("exchanges.release-delayed", "exchanges.cancel-delayed"),
    *("exchanges.publish", "exchanges.explain", "streams.list-super", "bindings.list"),
    *("connections.close", "connections.close-all", "connections.close-of-user"),
    *("transactions.list", "transactions.prepare", "transactions.commit"),
    *("transactions.rollback", "transactions.forget", "leases.release", "stages.list"),
    *("publishers.hand-over", "publishers.forget"),
    *("stages.drop", "queries.delete", "users.list", "users.authenticate", "limits.list"),
    *("users.state", "sql.ask", "sql.cancel", "policies.preview", "operator-policies.preview"),
    *("vhosts.start", "definitions.try", "config.reload", "config.set", "config.unset"),
    *("listeners.suspend", "listeners.resume", "app.stop", "app.start", "app.reset"),
    *("cluster.drain", "cluster.move", "logs.reopen", "service.reset-login-attempts"),
    *("service.enable-feature-flag", "service.rebalance"),
    *("service.reset-statistics", "service.change-replicas"),
    *("service.figures", "backups.start", "backups.cancel"),
    *("users.state", "sql.ask", "sql.cancel", "policies.preview", "operator-policies.preview"),
)
"""Commands that declare nothing, and those of leases, branches and batches, see `MODEL`."""


def test_every_command_that_may_change_something_is_in_one_of_the_tables() -> None:
    changing = {command.name for command in commands() if not command.reads}
    assert changing == {*CASES, *CHANGES_NONE}


class Place(NamedTuple):
    """A broker whose definitions can be made to refuse."""

    site: Site
    definitions: FailingDefinitions

    def state(self) -> Any:
        """Everything that is declared: what is in the model, and what is stored."""
        context, broker = self.site.context, self.broker
        target = ImportTarget(context.broker, context.users, context.definitions)
        return (
            document(target),
            {user.name: user_fields(user) for user in context.users.all()},
            {name: sorted(vhost.queues) for name, vhost in broker.vhosts.items()},
            [job.row() for job in broker.jobs.all()],
            [(branch.xid, branch.state, branch.position) for branch in broker.branches.of()],
            {group.name: _claims(group) for group in broker.leases.of()},
            [(q.name, q.ready_count(), q.leased) for q in broker.vhosts["/"].queues.values()],
            self.definitions.rows(),
        )

    def ask(self, *asked: Ask) -> None:
        """Run commands."""
        for name, fields in asked:
            self.site.run(name, **fields)

    @property
    def broker(self) -> Broker:
        """The broker."""
        return self.site.context.broker


def _claims(group: Group) -> tuple[Any, ...]:
    """What there is of a group."""
    numbers = group.epoch, group.last, group.committed, group.lost, len(group.settling)
    return *numbers, list(group.claims), list(group.unreported), group.holder


def _place() -> Place:
    store = FailingStore()
    place = Place(Site(store=store), store.definitions)
    # A job has its first slice in a later turn.
    place.broker.work.later = lambda step: None
    return place


def _tried(prepare: Callable[[Place], None], act: Callable[[Place], None]) -> None:
    """Let each write of a change be refused, and see that nothing of the change is left."""
    whole = _place()
    prepare(whole)
    whole.definitions.watch()
    act(whole)
    calls = list(whole.definitions.calls)
    assert calls
    for number, call in enumerate(calls):
        place = _place()
        prepare(place)
        before = place.state()
        place.definitions.watch(fails_at=number)
        with pytest.raises(HarebellError, match=WHY):
            act(place)
        assert place.state() == before, call
        place.definitions.watch()
        # Nothing of the first attempt is in the way of the second.
        act(place)
        assert place.state()[:3] == whole.state()[:3], call


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name, cases in CASES.items() for case in cases],
    ids=[f"{name}-{number}" for name, cases in CASES.items() for number, _ in enumerate(cases)],
)
def test_a_command_whose_change_cannot_be_stored_changes_nothing(name: str, case: Case) -> None:
    def prepare(place: Place) -> None:
        place.ask(*case.before)

    # An import empties the document that it is given.
    _tried(prepare, lambda place: place.site.run(name, **deepcopy(case.fields)))


AMQP: dict[str, tuple[m.Method, tuple[Ask, ...]]] = {
    "queue.declare": (m.QueueDeclare("q", durable=True), ()),
    "queue.bind": (m.QueueBind("q", "x", "k"), (_QUEUE, _EXCHANGE)),
    "queue.unbind": (m.QueueUnbind("q", "x", "k"), (_QUEUE, _EXCHANGE, _BOUND)),
    "queue.delete": (m.QueueDelete("q"), (_QUEUE, _EXCHANGE, _BOUND)),
    "exchange.declare": (m.ExchangeDeclare("x", "topic", durable=True), ()),
    "exchange.bind": (m.ExchangeBind("x", "amq.topic", "k"), (_EXCHANGE,)),
    "exchange.unbind": (m.ExchangeUnbind("x", "amq.topic", "k"), (_EXCHANGE, _CHAINED)),
    "exchange.delete": (m.ExchangeDelete("x"), (_QUEUE, _EXCHANGE, _BOUND, _CHAINED)),
}


@pytest.mark.parametrize(("method", "before"), AMQP.values(), ids=AMQP)
def test_a_method_whose_change_cannot_be_stored_changes_nothing(
    method: m.Method, before: tuple[Ask, ...]
) -> None:
    def prepare(place: Place) -> None:
        place.ask(*before)

    def act(place: Place) -> None:
        peer = place.site.world.peer()
        peer.send(method)
        (reply,) = peer.methods()
        if isinstance(reply, m.ChannelClose):
            assert reply.reply_code == 406
            raise Refusal(ErrorKind.PRECONDITION_FAILED, reply.reply_text)

    _tried(prepare, act)


_XID = Xid(0, b"tx", b"1")


def _publish(place: Place) -> None:
    place.ask(_QUEUE)
    place.site.world.peer().give(publish(b"m"))


def _branch(place: Place) -> None:
    """A branch that has published, and is ended."""
    place.ask(_QUEUE)
    queue = place.broker.vhosts["/"].queues["q"]
    branch = place.broker.branches.begin("/", _XID, OPERATOR)
    message = Message("", "q", Properties(b"\0\0", delivery_mode=PERSISTENT), b"m")
    branch.publish(message, (queue,), 0)
    place.broker.branches.apply(branch, Call.LAST_END)


def _prepare(place: Place) -> None:
    at_once(place.broker.branches.prepare("/", _XID, OPERATOR))


def _prepared(place: Place) -> None:
    _branch(place)
    _prepare(place)


def _group(place: Place) -> Group:
    vhost = place.broker.vhosts["/"]
    return place.broker.leases.open(vhost, vhost.queues["q"], "group", 0, "holder")


def _next_commit(place: Place) -> None:
    """Nothing of a group is written in the commit of its last write."""
    place.broker.commit.ticket += 1


def _open_group(place: Place) -> None:
    _publish(place)
    _group(place)
    _next_commit(place)


def _claim(place: Place) -> None:
    leases, vhost = place.broker.leases, place.broker.vhosts["/"]
    leases.claim(leases.find(vhost, vhost.queues["q"], "group"), 1, 0, "holder")


def _claimed(place: Place) -> None:
    """Two claims, of a message each."""
    _open_group(place)
    place.site.world.peer().give(publish(b"m"))
    for _ in range(2):
        _claim(place)
    _next_commit(place)


def _of_group(act: Callable[[Leases, Group], object]) -> Callable[[Place], object]:
    """A change of the group."""

    def change(place: Place) -> object:
        leases, vhost = place.broker.leases, place.broker.vhosts["/"]
        return act(leases, leases.find(vhost, vhost.queues["q"], "group"))

    return change


def _deleted(place: Place) -> None:
    place.site.run("queues.delete", name="q")


def _followed(place: Place) -> None:
    """A stream with a stored offset."""
    place.ask(_STREAM)
    peer = place.site.world.peer()
    arguments = {"x-stream-offset": "first", "x-stream-automatic-offset-tracking": True}
    peer.send(m.BasicQos(0, 10, False), m.BasicConsume("q", "tag", arguments=arguments))
    peer.give(publish(b"m"))
    peer.send(m.BasicAck(1), m.BasicCancel("tag"))
    assert place.definitions.rows()["offset"]


MODEL: dict[str, tuple[Callable[[Place], None], Callable[[Place], object]]] = {
    "a branch is prepared": (_branch, _prepare),
    "a prepared branch is committed": (
        _prepared,
        lambda place: place.broker.branches.decide("/", _XID, commit=True),
    ),
    "a prepared branch is rolled back": (
        _prepared,
        lambda place: place.broker.branches.decide("/", _XID, commit=False),
    ),
    "a group claims": (_open_group, _claim),
    "a group commits": (_claimed, _of_group(lambda all_, it: all_.commit(it, 1, "holder"))),
    "a group commits all": (_claimed, _of_group(lambda all_, it: all_.commit(it, 2, "holder"))),
    "a group releases": (_claimed, _of_group(lambda all_, it: all_.release(it, 1, "holder"))),
    "claims are taken back": (_claimed, _of_group(lambda all_, it: all_.take_back(it, 1))),
    "a group is forgotten": (_claimed, _of_group(lambda all_, it: all_.close(it, forget=True))),
    "a group is opened again": (_claimed, _group),
    "a queue with a group is deleted": (_open_group, _deleted),
    "a stream with an offset is deleted": (_followed, _deleted),
}
"""Changes that have no command of their own: what was there before, and the change."""


@pytest.mark.parametrize(("before", "act"), MODEL.values(), ids=MODEL)
def test_a_change_of_the_model_that_cannot_be_stored_is_not_made(
    before: Callable[[Place], None], act: Callable[[Place], object]
) -> None:
    _tried(before, lambda place: (act(place), None)[1])


def _close_commit(place: Place) -> None:
    for call in place.broker.commit.closing:
        call()


def test_the_numbers_of_a_publisher_are_stored_before_its_commit_is_closed() -> None:
    place = _place()
    publishers = place.broker.publishers
    key = Key(STAGED, "/", "ann", "sink")
    entry = publishers.entry(key)
    publishers.enter(entry, "run")
    publishers.advance(entry, 4)
    place.definitions.watch(fails_at=0)
    with pytest.raises(Refusal, match=WHY):
        _close_commit(place)
    assert (entry.position, entry.changed) == (-1, True)
    _close_commit(place)
    assert (entry.position, entry.changed) == (0, False)


def test_a_claim_of_the_same_commit_is_stored_before_the_commit_is_closed() -> None:
    place = _place()
    _publish(place)
    _group(place)
    _claim(place)
    before = place.definitions.rows()["lease"]
    place.definitions.watch(fails_at=0)
    with pytest.raises(Refusal, match=WHY):
        _close_commit(place)
    assert place.definitions.rows()["lease"] == before
    _close_commit(place)
    assert place.definitions.rows()["lease"] != before


def test_an_offset_that_cannot_be_stored_is_stored_later() -> None:
    place = _place()
    tracking = Tracking("/", "q", place.definitions, place.broker.commit)
    tracking.acknowledged(tracking.number_of("tag")[0], 5)
    place.definitions.watch(fails_at=0)
    with pytest.raises(Refusal, match=WHY):
        tracking.write()
    tracking.write()
    assert place.definitions.rows()["offset"] == {("/", "q", "tag"): {"position": 5}}


def test_a_super_stream_of_which_a_part_is_deleted_says_so_and_can_be_deleted_again() -> None:
    whole = _place()
    whole.ask(_SUPER)
    whole.definitions.watch()
    whole.site.run("streams.delete-super", name="s")
    said = set()
    for number in range(len(whole.definitions.calls)):
        place = _place()
        place.ask(_SUPER)
        place.definitions.watch(fails_at=number)
        with pytest.raises(HarebellError, match=WHY) as refused:
            place.site.run("streams.delete-super", name="s")
        said.add(str(refused.value).partition(": ")[0])
        stored = place.definitions.rows()
        assert {name for _, name in stored["queue"]} == set(place.broker.vhosts["/"].queues)
        assert ("/", "s") in stored["exchange"]
        assert len(stored["binding"]) == len(stored["queue"])
        place.site.run("streams.delete-super", name="s")
        assert place.state()[:3] == whole.state()[:3]
    assert said == {
        f"{count} of 2 partitions of super stream 's' in vhost '/' were deleted"
        for count in range(3)
    }


def test_a_lease_group_that_cannot_be_stored_is_not_there() -> None:
    def prepare(place: Place) -> None:
        place.site.run(*_QUEUE[:1], **_QUEUE[1])

    def act(place: Place) -> None:
        broker = place.site.context.broker
        vhost = broker.vhosts["/"]
        queue = vhost.queues["q"]
        try:
            broker.leases.open(vhost, queue, "group", 0, object())
        finally:
            there = queue.leases is not None and "group" in queue.leases.groups
            assert there == bool(place.definitions.rows()["lease"])

    _tried(prepare, act)


class _Disk(SimDisk):
    """A disk that refuses operations: one of them, or all from one on."""

    def refuse(self, first: int, last: int) -> None:
        """Refuse those with these numbers, counted from now on."""
        begin = self.operations

        def hook(number: int, kind: str, path: str) -> None:
            if first <= number - begin <= last and kind != "free":
                raise OSError(errno.ENOSPC, WHY)

        self.hook = hook


def _tried_on_disk(
    prepare: Callable[[_Disk], Any], act: Callable[[Any], object], state: Callable[[Any], object]
) -> None:
    """Refuse each operation of an act; what is left is what was there, here and after a restart.

    Args:
        prepare: opens what is on a disk; makes what was there before on an empty one.
        act: the change.
        state: what there is.
    """
    whole = _Disk()
    done = prepare(whole)
    before = whole.operations
    act(done)
    count = whole.operations - before
    assert count
    for first, last in (pair for n in range(1, count + 1) for pair in ((n, n), (n, 10**9))):
        disk = _Disk()
        area = prepare(disk)
        expected = state(area)
        disk.refuse(first, last)
        with suppress(Refusal):
            act(area)
            expected = state(done)
        disk.hook = None
        assert state(area) == expected, (first, last)
        assert state(prepare(disk)) == expected, (first, last)
        act(area)
        assert state(area) == state(done), (first, last)
        assert state(prepare(disk)) == state(done), (first, last)


_KEY = Key(STAGED, "/", "ann", "sink")


def _stages(disk: _Disk, known: int = 0) -> Stages:
    """The stages on a disk; a new one gets so many pieces."""
    clock = Clock()
    stages = Stages(disk, clock, Timers(clock))
    stages.restore(lambda key: 0)
    if not disk.names(DIRECTORY):
        for number in range(known):
            _stage(stages, number)
    return stages


def _stage(stages: Stages, number: int) -> None:
    data = b"rows %d" % number
    stages.append(_KEY, 0, (0, 1), number, Piece("value", 0, 0, len(data), 1, crc32c(data)), data)


def _staged(stages: Stages) -> Any:
    """What is staged, and whose share it is."""
    rows = [
        (
            batch.key,
            batch.number,
            attempt,
            [stages.read(batch.key, batch.number, p) for p in pieces],
        )
        for batch in stages.all()
        for attempt, pieces in batch.pieces.items()
    ]
    return rows, len(stages), stages.byte_count, stages.shares.of("ann")


@pytest.mark.parametrize("known", [0, 1, 2])
def test_a_piece_of_a_batch_that_cannot_be_stored_is_not_there(known: int) -> None:
    _tried_on_disk(lambda disk: _stages(disk, known), lambda stages: _stage(stages, known), _staged)


def test_a_batch_of_which_a_piece_is_missing_is_not_made() -> None:
    stages = _stages(_Disk())
    with pytest.raises(Refusal, match="came, and 0 is the next"):
        _stage(stages, 1)
    assert _staged(stages) == ([], 0, 0, 0)


_FILE = ("/", "ann", "file")


def _staging(disk: _Disk, known: bool = False) -> Staging:
    """The staging area on a disk; a new one gets a file without its properties."""
    clock, store = Clock(), MemoryStore(Gauge())
    staging = Staging(disk, clock, Timers(clock), store.commit)
    if known and not len(staging):
        staged = staging.open(_FILE, 4, "holder")
        staging.write(staged, b"bo")
        staging.release(staged)
    return staging


def _send_file(staging: Staging) -> None:
    """Stage what is missing of a file."""
    staged = staging.open(_FILE, 4, "holder")
    try:
        staging.write(staged, b"body"[staged.staged :])
        staging.describe(staged, b"properties")
    finally:
        staging.release(staged)


def _whole_files(staging: Staging) -> Any:
    """The files that can be published. What is stored of another one can be continued."""
    found = staging.find(_FILE)
    return staging.body(found) if found is not None and found.whole else None


@pytest.mark.parametrize("known", [False, True])
def test_a_file_that_cannot_be_stored_is_not_there(known: bool) -> None:
    _tried_on_disk(lambda disk: _staging(disk, known), _send_file, _whole_files)


ALONE = {
    "append publisher": test_the_numbers_of_a_publisher_are_stored_before_its_commit_is_closed,
    "put offset": test_an_offset_that_cannot_be_stored_is_stored_later,
}
"""Writes that wait for the end of a commit or for a tick."""
OF_THE_STORE = ("put dropped", "drop dropped")
"""Rows of the store's own: which files of deleted logs may be removed."""


def test_every_kind_of_write_is_refused_by_one_of_these_tests() -> None:
    seen: set[str] = set()

    def note(before: Callable[[Place], None], act: Callable[[Place], object]) -> None:
        place = _place()
        before(place)
        place.definitions.watch()
        act(place)
        seen.update(place.definitions.calls)

    for name, cases in CASES.items():
        for before, fields in ((case.before, deepcopy(case.fields)) for case in cases):
            note(
                lambda place, before=before: place.ask(*before),  # type: ignore[misc]
                lambda place, name=name, fields=fields: place.ask((name, fields)),  # type: ignore[misc]
            )
    for prepare, change in MODEL.values():
        note(prepare, change)
    kinds = {f"{verb} {kind}" for verb in ("put", "drop") for kind in TABLES}
    kinds |= {f"append {kind}" for kind in LOGS.values()}
    assert seen | set(ALONE) == kinds - set(OF_THE_STORE)
