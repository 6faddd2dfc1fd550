"""Jobs move, copy, remove and retry what a filter selects, whole over a crash, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from harebell.admin.commands import jobs as commands
from harebell.admin.context import CommandRefused
from harebell.auth.authority import Question, RemoteUser, Undecided
from harebell.auth.permissions import Permissions, everything
from harebell.auth.topics import TopicPermission
from harebell.auth.users import User
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.ports import JOB_LOG
from harebell.front.common.settings import Settings
from harebell.front.convert import EDITOR, composed
from harebell.front.limits import WORK_TURN_UNITS
from harebell.model.jobs import CANCELLED, COPY, DONE, FAILED, RUNNING, Job, Orders
from harebell.model.limits import JOB_WAIT_MS, JOBS_KEPT, JOBS_RUNNING
from tests.sim.disk import PowerCut, Random
from tests.unit.admin.test_browse import KINDS, TAKING, filled, numbered, numbers
from tests.unit.management.control.test_dispatcher import World
from tests.unit.model.things import Taker
from tests.unit.store.stores import Bench

EVEN = "body.n IN (0, 2, 4, 6, 8)"


async def act(world: World, command: str, **fields: Any) -> dict[str, Any]:
    """Run a command to its end; the answer."""
    asked = world.ask(command, **fields)
    await world.turns(asked)
    return asked.result()


async def ended(world: World, command: str, **fields: Any) -> Job:
    """Start a job and have turns and commits until it has ended."""
    answer = await act(world, command, **fields)
    assert answer["ok"], answer
    job = world.broker.jobs.find(answer["answer"]["id"])
    assert job is not None
    finish(world, job)
    return job


def finish(world: World, job: Job) -> None:
    for _ in range(10_000):
        if job.state != RUNNING:
            return
        world.registry.turns.next_turn()
        world.flush()
        world.broker.committed()
    raise AssertionError(f"{job.row()} does not end")


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", TAKING)
async def test_a_move_takes_what_is_selected_and_leaves_the_rest_in_its_order(kind: str) -> None:
    world = World()
    queue = filled(world, kind)
    world.vhost.declare_queue("target", durable=True)
    before = await numbers(world, kind)
    job = await ended(world, "queues.move", name=kind, where=EVEN, to_queue="target")
    assert (job.state, job.selected, job.done, job.left) == (DONE, 5, 5, 0)
    assert job.examined == job.messages == 10
    assert await numbers(world, kind) == [n for n in before if n % 2]
    assert await numbers(world, "target") == [n for n in before if not n % 2]
    assert queue.ready_count() == 5
    taker = Taker(queue)
    queue.add_consumer(taker)
    first = [int(body[6:-1]) for body, _, _ in taker.got]
    assert all(n % 2 for n in first)
    assert not any(again for _, _, again in taker.got)
    for _, position, _ in list(taker.got):
        queue.settle(position)
    queue.drain()
    assert queue.ready_count() == 0


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_a_copy_leaves_everything_where_it_is(kind: str) -> None:
    world = World()
    filled(world, kind)
    world.vhost.declare_queue("target", arguments=KINDS[kind], durable=True)
    job = await ended(world, "queues.copy", name=kind, where=EVEN, to_queue="target")
    world.flush()
    world.broker.committed()
    assert (job.state, job.done) == (DONE, 5)
    assert len(await numbers(world, kind)) == 10
    assert sorted(await numbers(world, "target")) == [0, 2, 4, 6, 8]


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", TAKING)
async def test_unacknowledged_messages_are_not_touched(kind: str) -> None:
    world = World()
    queue = filled(world, kind)
    taken = [queue.get() for _ in range(3)]
    for _, position, _ in taken[:2]:
        queue.requeue(position)
    out = {int(message.body[6:-1]) for message, _, _ in taken[2:]}
    job = await ended(world, "queues.remove", name=kind, where="true")
    assert (job.state, job.done) == (DONE, 9)
    assert (queue.ready_count(), queue.unacked) == (0, 1)
    for _, position, _ in taken[2:]:
        queue.requeue(position)
    assert set(await numbers(world, kind)) == out
    queue.publish(numbered(42))
    assert set(await numbers(world, kind)) == {*out, 42}


@pytest.mark.asyncio
async def test_a_stream_can_be_copied_and_nothing_removed_from_it() -> None:
    world = World()
    filled(world, "stream")
    world.vhost.declare_queue("target")
    for command in ("queues.move", "queues.remove"):
        fields = {"to_queue": "target"} if command == "queues.move" else {}
        answer = await act(world, command, name="stream", where="true", **fields)
        assert "only its retention removes them" in answer["error"]


@pytest.mark.asyncio
async def test_messages_go_to_an_exchange_with_their_keys_or_another() -> None:
    world = World()
    filled(world, "classic")
    world.vhost.declare_exchange("topic", "topic")
    one = world.vhost.declare_queue("one")
    world.vhost.bind("topic", one, "key.3")
    job = await ended(world, "queues.move", name="classic", where="body.n < 5", to_exchange="topic")
    assert (job.state, job.selected, job.done, job.left) == (DONE, 5, 1, 4)
    assert "no queue is bound for routing key 'key.0' at exchange 'topic'" in job.problem
    assert await numbers(world, "classic") == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    job = await ended(
        world, "queues.move", name="classic", where="true", to_exchange="topic", routing_key="key.3"
    )
    assert (job.done, job.left) == (9, 0)
    assert await numbers(world, "one") == [3, 0, 1, 2, 4, 5, 6, 7, 8, 9]


@pytest.mark.asyncio
async def test_a_full_queue_gets_no_more_and_what_it_does_not_take_stays() -> None:
    world = World()
    filled(world, "classic")
    limits = {"x-max-length": 3, "x-overflow": "reject-publish"}
    world.vhost.declare_queue("small", arguments=limits)
    job = await ended(world, "queues.move", name="classic", where="true", to_queue="small")
    assert (job.done, job.left, job.problem) == (3, 7, "queue 'small' is full")
    assert await numbers(world, "classic") == list(range(3, 10))


VALUE = {"x-deduplication-header": "a"}
UNWILLING: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "duplicate": (
        {"x-message-deduplication": True},
        {"headers": VALUE},
        "queue 'other' has a message with the same x-deduplication-header",
    ),
    "full": ({"x-max-length": 1, "x-overflow": "reject-publish"}, {}, "queue 'other' is full"),
    "full, with a dead letter": (
        {"x-max-length": 1, "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": ""},
        {},
        "queue 'other' is full",
    ),
    "too large": (
        {"x-max-length-bytes": 3},
        {},
        "queue 'other' would drop it: it is over the limit of the queue by itself",
    ),
    "no room at all": (
        {"x-max-length": 0},
        {},
        "queue 'other' would drop it: it is over the limit of the queue by itself",
    ),
    "full, with priorities": (
        {"x-max-length": 1, "x-max-priority": 5},
        {"priority": 4},
        "queue 'other' is full, and priorities decide which message it drops",
    ),
    "time to live of the queue": (
        {"x-message-ttl": 0},
        {},
        "it would expire in queue 'other' at once",
    ),
    "time to live of the message": (
        {},
        {"expiration": "0"},
        "it would expire in queue 'other' at once",
    ),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("verb", ["move", "copy", "retry"])
@pytest.mark.parametrize("why", UNWILLING)
async def test_a_message_that_a_queue_would_not_keep_is_left_where_it_is(
    why: str, verb: str
) -> None:
    arguments, properties, problem = UNWILLING[why]
    world = World()
    world.broker.clock.advance(1)
    source = world.vhost.declare_queue("source", durable=True)
    other = world.vhost.declare_queue("other", durable=True, arguments=arguments)
    world.vhost.declare_queue("third", durable=True)
    for queue in ("other", "third"):
        world.vhost.bind("amq.fanout", world.vhost.queue(queue), "")
    other.publish(composed("", "other", b"ab", {"headers": VALUE}))
    before = other.ready_count()
    headers = {**properties.get("headers", {}), "x-first-death-queue": "other"}
    source.publish(composed("", "source", b"moved", {**properties, "headers": headers}))
    where = {} if verb == "retry" else {"to_exchange": "amq.fanout"}
    job = await ended(world, f"queues.{verb}", name="source", where="true", **where)
    assert (job.done, job.left, job.problem) == (0, 1, problem)
    assert source.ready_count() == 1
    assert other.ready_count() == before
    assert world.vhost.queue("third").ready_count() == 0


@pytest.mark.asyncio
async def test_a_consumer_that_is_ready_gets_what_the_queue_would_not_keep() -> None:
    world = World()
    source = world.vhost.declare_queue("source", durable=True)
    other = world.vhost.declare_queue("other", durable=True, arguments={"x-message-ttl": 0})
    taker = Taker(other)
    other.add_consumer(taker)
    source.publish(composed("", "source", b"moved", {}))
    job = await ended(world, "queues.move", name="source", where="true", to_queue="other")
    assert (job.done, job.left) == (1, 0)
    assert [body for body, _, _ in taker.got] == [b"moved"]


@pytest.mark.asyncio
async def test_a_retry_to_a_direct_reply_that_nobody_waits_for_is_left() -> None:
    world = World()
    source = world.vhost.declare_queue("source", durable=True)
    headers = {"x-first-death-queue": "amq.rabbitmq.reply-to.gone"}
    source.publish(composed("", "source", b"1", {"headers": headers}))
    job = await ended(world, "queues.retry", name="source", where="true")
    assert (job.done, job.left, source.ready_count()) == (0, 1, 1)
    assert "no requester waits for a direct reply" in job.problem


@pytest.mark.asyncio
@pytest.mark.parametrize("expiration", ["abc", "1e3", "9" * 5_000, "-1", "\u0661"])
async def test_an_invalid_expiration_stops_no_job(expiration: str) -> None:
    world = World()
    source = world.vhost.declare_queue("source", durable=True)
    world.vhost.declare_queue("other", durable=True)
    sent = {"expiration": expiration[:255]}
    source.publish(composed("", "source", b"moved", sent))
    job = await ended(world, "queues.move", name="source", where="true", to_queue="other")
    assert (job.done, job.left) == (1, 0)


@pytest.mark.asyncio
async def test_a_retry_returns_dead_letters_to_their_queue_and_counts() -> None:
    world = World()
    dead = world.vhost.declare_queue("dead")
    origin = world.vhost.declare_queue("orders")
    headers = {
        "x-death": [{"queue": "orders", "reason": "rejected"}],
        "x-first-death-queue": "orders",
        "x-last-death-reason": "rejected",
        "kept": 1,
    }
    dead.publish(composed("", "dead", b"1", {"headers": headers, "message_id": "m"}))
    dead.publish(composed("", "dead", b"2", {"headers": {**headers, "x-retries": 4}}))
    dead.publish(composed("", "dead", b"3", {}))
    job = await ended(world, "queues.retry", name="dead", where="true")
    assert (job.done, job.left) == (2, 1)
    assert "header x-first-death-queue" in job.problem
    found = []
    while (one := origin.get()) is not None:
        found.append((one[0].body, dict(EDITOR.headers_of(one[0]))))
    about = {"kept": 1, "x-retried-from": "dead"}
    assert found == [(b"1", {**about, "x-retries": 1}), (b"2", {**about, "x-retries": 5})]


@pytest.mark.asyncio
async def test_a_retry_counts_on_from_the_largest_number_of_retries() -> None:
    world = World()
    dead = world.vhost.declare_queue("dead")
    origin = world.vhost.declare_queue("orders")
    headers = {"x-first-death-queue": "orders"}
    dead.publish(composed("", "dead", b"1", {"headers": {**headers, "x-retries": 2**63 - 1}}))
    dead.publish(composed("", "dead", b"2", {"headers": headers}))
    job = await ended(world, "queues.retry", name="dead", where="true")
    assert (job.state, job.done, job.left) == (DONE, 2, 0)
    first = origin.get()
    assert first is not None
    assert EDITOR.headers_of(first[0])["x-retries"] == 2**63 - 1


@pytest.mark.asyncio
async def test_a_job_loses_nothing_for_a_routing_key_that_no_queue_can_keep() -> None:
    world = World()
    queue = filled(world, "classic")
    world.vhost.bind("amq.fanout", world.vhost.declare_queue("target", durable=True), "")
    where = {"name": "classic", "where": "true", "to_exchange": "amq.fanout"}
    answer = await act(world, "queues.move", **where, routing_key="\u00e9" * 128)
    assert "the routing key has 256 bytes, at most 255 are allowed" in answer["error"]
    assert queue.ready_count() == 10
    job = await ended(world, "queues.move", **where, routing_key="x" * 255)
    assert (job.done, queue.ready_count()) == (10, 0)


@pytest.mark.asyncio
async def test_a_job_leaves_what_an_exchange_behind_a_binding_would_delay() -> None:
    world = World()
    source = world.vhost.declare_queue("source")
    target = world.vhost.declare_queue("target")
    world.vhost.declare_exchange(
        "late", "x-delayed-message", arguments={"x-delayed-type": "fanout"}
    )
    world.vhost.bind("amq.fanout", world.vhost.exchange("late"), "")
    world.vhost.bind("late", target, "")
    for delay in (5_000, 0):
        source.publish(composed("", "source", b"1", {"headers": {"x-delay": delay}}))
    job = await ended(world, "queues.move", name="source", where="true", to_exchange="amq.fanout")
    assert (job.state, job.done, job.left) == (DONE, 1, 1)
    assert job.problem == "exchange 'late' delays it, and takes no messages of a job"
    assert (source.ready_count(), target.ready_count()) == (1, 1)


@pytest.mark.asyncio
@pytest.mark.parametrize("verb", ["move", "copy", "remove"])
async def test_a_job_that_publishes_waits_while_publishers_have_to(verb: str) -> None:
    world = World()
    filled(world, "classic")
    world.vhost.declare_queue("target", durable=True)
    world.registry.publishers.set_short("disk", True)
    where = {} if verb == "remove" else {"to_queue": "target"}
    answer = await act(world, f"queues.{verb}", name="classic", where="true", **where)
    job = world.broker.jobs.find(answer["answer"]["id"])
    assert job is not None

    def pass_time() -> None:
        for _ in range(3):
            world.broker.clock.advance(2 * JOB_WAIT_MS)
            world.broker.timers.run()
            world.registry.turns.next_turn()

    pass_time()
    assert job.done == (10 if verb == "remove" else 0)
    world.registry.publishers.set_short("disk", False)
    pass_time()
    finish(world, job)
    assert (job.state, job.done, job.left) == (DONE, 10, 0)


@pytest.mark.asyncio
async def test_consumers_get_messages_while_a_job_runs_and_none_twice() -> None:
    world = World()
    queue = filled(world, "classic", 3_000)
    world.vhost.declare_queue("target", durable=True)
    answer = await act(world, "queues.move", name="classic", where="true", to_queue="target")
    job = world.broker.jobs.find(answer["answer"]["id"])
    assert job is not None
    got = []
    while job.state == RUNNING:
        one = queue.get()
        if one is not None:
            got.append(int(one[0].body[6:-1]))
            queue.settle(one[1])
        world.registry.turns.next_turn()
        world.flush()
        world.broker.committed()
    moved = await numbers(world, "target")
    assert got
    assert sorted(got + moved) == list(range(3_000))


@pytest.mark.asyncio
async def test_a_job_is_listed_and_can_be_cancelled() -> None:
    world = World()
    filled(world, "classic", 5_000)
    world.vhost.declare_queue("target")
    answer = await act(world, "queues.move", name="classic", where="true", to_queue="target")
    number = answer["answer"]["id"]
    listed = (await act(world, "jobs.list"))["answer"]
    assert [(row["id"], row["state"], row["messages"]) for row in listed] == [
        (number, RUNNING, 5_000)
    ]
    assert (await act(world, "jobs.cancel", id=number))["answer"]["state"] == CANCELLED
    job = world.broker.jobs.find(number)
    assert job is not None
    done = job.done
    for _ in range(5):
        world.registry.turns.next_turn()
    assert job.done == done < 5_000
    assert len(await numbers(world, "classic")) + len(await numbers(world, "target")) == 5_000
    assert "is not running" in (await act(world, "jobs.cancel", id=number))["error"]
    assert "no job 77" in (await act(world, "jobs.show", id=77))["error"]


@pytest.mark.asyncio
async def test_an_impossible_job_is_refused_before_anything_happens() -> None:
    world = World()
    filled(world, "classic")
    refused = {
        "both where the messages are": {"to_queue": "classic"},
        "no queue 'missing'": {"to_queue": "missing"},
        "no exchange 'missing'": {"to_exchange": "missing"},
        "either to_queue or to_exchange": {},
        "a queue has no routing key": {"to_queue": "classic", "routing_key": "a"},
        "did you mean 'size'?": {"to_queue": "classic", "where": "sice > 1"},
    }
    for error, fields in refused.items():
        answer = await act(world, "queues.move", **{"name": "classic", "where": "true", **fields})
        assert error in answer["error"]
    assert world.broker.jobs.all() == []


@pytest.mark.asyncio
async def test_a_deleted_queue_ends_its_job() -> None:
    world = World()
    filled(world, "classic", 5_000)
    answer = await act(world, "queues.remove", name="classic", where="true")
    job = world.broker.jobs.find(answer["answer"]["id"])
    assert job is not None
    world.vhost.delete_queue("classic")
    finish(world, job)
    assert (job.state, job.problem) == (FAILED, "queue 'classic' was deleted")


def after_the_cut(bench: Bench, seed: int) -> Bench:
    """The store as the next process finds it; what was declared before is there."""
    found = Bench(bench.disk.crash(Random(seed)))
    for key, fields in bench.definitions.load("queue"):
        found.definitions.put("queue", key, fields)
    found.definitions.write(found.definitions.take())
    return found


@pytest.mark.parametrize("verb", ["move", "copy"])
@pytest.mark.parametrize("seed", range(6))
def test_a_power_cut_in_a_job_loses_and_doubles_nothing(verb: str, seed: int) -> None:
    count = 400
    bench = Bench()
    world = World(bench.store, bench.clock)
    for name in ("source", "target"):
        world.vhost.declare_queue(name, durable=True)
    source = world.vhost.queues["source"]
    for number in range(count):
        source.publish(numbered(number))
    bench.commit()
    orders = Orders(verb, "/", "source", "", "", "target")
    job = world.broker.jobs.start(orders)
    for _ in range(seed):
        world.registry.turns.next_turn()
        bench.commit()
        world.broker.committed()
    world.registry.turns.next_turn()
    last = bench.disk.operations + 1 + 2 * seed

    def cut(number: int, _kind: str, _path: str) -> None:
        if number >= last:
            bench.disk.cut_power()
            raise PowerCut

    bench.disk.hook = cut
    with contextlib.suppress(PowerCut):
        bench.commit()
    bench = after_the_cut(bench, seed)
    world = World(bench.store, bench.clock)
    world.broker.restore()
    found = world.broker.jobs.find(job.number)
    if found is None:
        # The start of the job was not on disk: then nothing of its work may be.
        assert not seed
        assert asyncio.run(numbers(world, "target")) == []
        assert asyncio.run(numbers(world, "source")) == list(range(count))
        return
    for _ in range(2_000):
        if found.state != RUNNING:
            break
        world.broker.timers.run()
        world.registry.turns.next_turn()
        bench.commit()
        world.broker.committed()
    assert found.state == DONE
    moved = asyncio.run(numbers(world, "target"))
    assert moved == list(range(count))
    left = asyncio.run(numbers(world, "source"))
    assert left == ([] if verb == "move" else list(range(count)))


def test_jobs_of_one_user_leave_room_for_those_of_others() -> None:
    world = World()
    filled(world, "classic")
    world.vhost.declare_queue("target", durable=True)
    jobs, most = world.broker.jobs, JOBS_RUNNING // 4
    orders = Orders(COPY, "/", "classic", routing_key="target", user="eve")
    # They begin in another turn.
    world.broker.work.charge(WORK_TURN_UNITS)
    mine = [jobs.start(orders) for _ in range(most)]
    with pytest.raises(Refusal, match=f"user 'eve' has {most} running jobs, and one user may hav"):
        jobs.start(orders)
    other = jobs.start(orders._replace(user="ann"))
    jobs.cancel(other)
    for _ in range(JOBS_KEPT + 1):
        jobs.cancel(mine.pop())
        mine.append(jobs.start(orders))
    # What has ended of others is not forgotten for what one user starts and ends.
    assert jobs.find(other.number) is other
    assert len(jobs.all()) == JOBS_KEPT + most
    finish(world, mine[-1])
    assert mine[-1].state == DONE


@pytest.mark.asyncio
async def test_a_message_that_a_job_cannot_handle_ends_it_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    told: list[str] = []
    world.broker.failures.report = lambda name, text: told.append(name)
    filled(world, "classic", 3)
    world.vhost.declare_queue("target", durable=True)

    def broken(message: Any) -> str:
        raise ValueError("cannot be decoded")

    monkeypatch.setattr(world.broker.jobs.editor, "expiration_of", broken)
    job = await ended(world, "queues.move", name="classic", where="true", to_queue="target")
    assert job.state == FAILED
    assert "ValueError: cannot be decoded" in job.problem
    assert len(await numbers(world, "classic")) == 3
    assert told == ["Run.step"]


def actor(world: World, **topics: TopicPermission) -> User:
    """Add a user with all permissions, and topic permissions by exchange."""
    user = User("mover", "", permissions={"/": everything()})
    if topics:
        user.topic_permissions["/"] = {f"amq.{name}": topic for name, topic in topics.items()}
    world.users.put(user)
    return user


def moved(world: World, user: User, name: str, **target: Any) -> Job:
    """Start a move of a user, and return its job, which has done nothing yet."""
    row = commands.move(world.dispatcher.context.on_behalf_of(user), name, "true", **target)
    job = world.broker.jobs.find(row["id"])
    assert job is not None
    return job


def test_a_job_is_seen_by_its_user_by_readers_of_its_queue_and_by_those_who_see_all() -> None:
    world = World()
    filled(world, "classic")
    world.vhost.declare_queue("target")
    number = moved(world, actor(world), "classic", to_queue="target").number
    nothing, reader = Permissions("", "", ""), Permissions("", "", "^classic$")
    for tag, permissions, sees in [
        ("management", nothing, False),
        ("policymaker", Permissions(".*", ".*", "^target$"), False),
        ("management", reader, True),
        ("monitoring", nothing, True),
    ]:
        user = User("other", "", tags=(tag,), permissions={"/": permissions})
        context = world.dispatcher.context.on_behalf_of(user)
        assert [row["id"] for row in commands.list_jobs(context)] == ([number] if sees else [])
        if not sees:
            with pytest.raises(CommandRefused, match=f"no job {number}"):
                commands.show(context, number)


@pytest.mark.parametrize("starter", ["mover", ""])
def test_a_job_is_cancelled_by_its_user_or_an_administrator_and_nobody_else(starter: str) -> None:
    world = World()
    filled(world, "classic")
    world.vhost.declare_queue("target")
    user = actor(world)
    # It begins in another turn.
    world.broker.work.charge(WORK_TURN_UNITS)
    job = world.broker.jobs.start(Orders(COPY, "/", "classic", routing_key="target", user=starter))
    reader = User("other", "", tags=("monitoring",), permissions={"/": everything()})
    with pytest.raises(CommandRefused, match="administrator may cancel it") as refused:
        commands.cancel(world.dispatcher.context.on_behalf_of(reader), job.number)
    assert refused.value.kind is ErrorKind.ACCESS_REFUSED
    assert job.state == RUNNING
    # A user who may do nothing any more can still stop own jobs.
    user.permissions["/"] = Permissions("", "", "")
    ending = user if starter else User("boss", "", tags=("administrator",))
    commands.cancel(world.dispatcher.context.on_behalf_of(ending), job.number)
    assert job.state == CANCELLED


def test_a_job_stops_when_its_queue_becomes_exclusive() -> None:
    world = World()
    queue = filled(world, "classic")
    world.vhost.declare_queue("target")
    job = moved(world, actor(world), "classic", to_queue="target")
    # As a session of AMQP 0-10 does that declares it.
    world.vhost.give(queue, object())
    finish(world, job)
    assert (job.state, job.done, queue.ready_count()) == (FAILED, 0, 10)
    assert "cannot obtain exclusive access to locked queue 'classic'" in job.problem


def test_a_job_leaves_what_its_user_may_not_publish() -> None:
    world = World()
    filled(world, "classic")
    target = world.vhost.declare_queue("target", durable=True)
    world.vhost.bind("amq.topic", target, "#", {})
    user = actor(world, topic=TopicPermission("^mine", ".*"))
    job = moved(world, user, "classic", to_exchange="amq.topic", routing_key="others")
    finish(world, job)
    assert (job.state, job.done, job.left) == (DONE, 0, 10)
    assert "write access to topic 'others' in exchange 'amq.topic'" in job.problem
    job = moved(world, user, "classic", to_exchange="amq.topic", routing_key="mine")
    finish(world, job)
    assert (job.state, job.done, job.left) == (DONE, 10, 0)


@pytest.mark.parametrize("verb", ["move", "copy", "retry"])
@pytest.mark.parametrize("who", ["user", "impersonator", "operator"])
def test_a_job_publishes_no_message_of_another_user_under_that_name(who: str, verb: str) -> None:
    world = World()
    source = world.vhost.declare_queue("source")
    world.vhost.declare_queue("target")
    headers = {"x-first-death-queue": "target"}
    for user_id in ("ann", "mover"):
        sent = {"user_id": user_id, "headers": headers}
        source.publish(composed("", "source", b"pay 5", sent))
    user = actor(world)
    user.tags = ("impersonator",) if who == "impersonator" else ()
    context = world.dispatcher.context.on_behalf_of(None if who == "operator" else user)
    where = {} if verb == "retry" else {"to_queue": "target"}
    row = getattr(commands, verb)(context, "source", "true", **where)
    job = world.broker.jobs.find(row["id"])
    assert job is not None
    finish(world, job)
    # A retry returns messages to where their publishers have sent them.
    left = int(who == "user" and verb != "retry")
    assert (job.state, job.done, job.left) == (DONE, 2 - left, left)
    assert world.vhost.queue("target").ready_count() == 2 - left
    if left:
        assert job.problem == ("user_id property set to 'ann' but authenticated user was 'mover'")


def test_a_job_leaves_messages_that_are_too_large_to_publish() -> None:
    world = World()
    filled(world, "classic")
    world.vhost.declare_queue("target", durable=True)
    world.dispatcher.context.settings = Settings(rng=bytes, message_max=3)
    job = moved(world, actor(world), "classic", to_queue="target")
    finish(world, job)
    assert (job.done, job.left) == (0, 10)
    assert "is larger than configured max size 3" in job.problem


@pytest.mark.parametrize("taken", ["read", "write", "user"])
def test_a_job_stops_when_a_right_of_its_user_is_taken_away(taken: str) -> None:
    world = World()
    queue = filled(world, "classic")
    world.vhost.declare_queue("target", durable=True)
    user = actor(world)
    job = moved(world, user, "classic", to_queue="target")
    if taken == "user":
        world.users.remove("mover")
    else:
        patterns = {"configure": ".*", "write": ".*", "read": ".*", taken: "^none"}
        user.permissions["/"] = Permissions(**patterns)
    finish(world, job)
    assert (job.state, job.done, queue.ready_count()) == (FAILED, 0, 10)
    expected = "no user 'mover' any more" if taken == "user" else f"{taken} access to "
    assert expected in job.problem


def test_a_job_that_goes_on_after_a_restart_has_the_rights_that_its_user_has_then() -> None:
    world = World()
    queue = filled(world, "classic")
    world.vhost.declare_queue("target", durable=True)
    jobs = world.broker.jobs
    jobs.rights_of = world.dispatcher.context.job_rights
    job = jobs.start(Orders("move", "/", "classic", "", "", "target", "mover"))
    finish(world, job)
    assert (job.state, queue.ready_count()) == (FAILED, 10)
    assert "no user 'mover' any more" in job.problem


def running(bench: Bench, *, user: str = "") -> tuple[World, Job]:
    """A world on a store with a move from "source" to "target" that has done its first slice."""
    world = World(bench.store, bench.clock)
    world.broker.jobs.rights_of = world.dispatcher.context.job_rights
    for name in ("source", "target"):
        world.vhost.declare_queue(name, durable=True)
    for number in range(2_000):
        world.vhost.queues["source"].publish(numbered(number))
    bench.commit()
    if user:
        made_user(world, user, "first")
    context = world.dispatcher.context
    orders = Orders("move", "/", "source", "", "", "target", user)
    job = world.broker.jobs.start(orders, context.job_rights(orders))
    world.registry.turns.next_turn()
    bench.commit()
    world.broker.committed()
    assert job.state == RUNNING
    assert job.done
    return world, job


def made_user(world: World, name: str, password_hash: str) -> User:
    user = User(name, password_hash, permissions={"/": everything()})
    world.users.put(user)
    return user


def test_a_job_of_a_vhost_that_is_gone_ends_after_a_restart() -> None:
    bench = Bench()
    _, job = running(bench)
    job.orders = job.orders._replace(vhost="gone")
    bench.store.open_log(JOB_LOG, durable=True, keep_all=True).append(
        Message("", "", Properties(b"", PERSISTENT), job.encode())
    )
    bench.commit()
    _, found = restarted(after_the_cut(bench, 1), job.number)
    assert (found.state, found.problem) == (FAILED, "no vhost 'gone'")


def restarted(bench: Bench, number: int, **users: str) -> tuple[World, Job]:
    """The world after a restart with these users; the job has gone on to its end."""
    world = World(bench.store, bench.clock)
    world.broker.jobs.rights_of = world.dispatcher.context.job_rights
    for name, password_hash in users.items():
        made_user(world, name, password_hash)
    world.broker.restore()
    job = world.broker.jobs.find(number)
    assert job is not None
    for _ in range(2_000):
        if job.state != RUNNING:
            break
        world.broker.timers.run()
        world.registry.turns.next_turn()
        bench.commit()
        world.broker.committed()
    return world, job


@pytest.mark.parametrize("name", ["source", "target"])
def test_a_job_does_not_go_on_with_another_queue_of_the_same_name(name: str) -> None:
    bench = Bench()
    _, job = running(bench)
    bench = after_the_cut(bench, 1)
    ((key, fields),) = [each for each in bench.definitions.load("queue") if each[0][1] == name]
    bench.definitions.put("queue", key, {**fields, "identity": "f" * 32})
    bench.definitions.write(bench.definitions.take())
    world, found = restarted(bench, job.number)
    assert (found.state, found.done) == (FAILED, job.done)
    assert found.problem.startswith(f"queue '{name}' was deleted and declared again since the job")
    assert world.vhost.queues[name].ready_count() == 0


def test_a_job_ends_when_the_queue_that_it_moves_to_is_deleted_and_declared_again() -> None:
    bench = Bench()
    world, job = running(bench)
    before = job.done
    world.vhost.delete_queue("target")
    other = world.vhost.declare_queue("target", durable=True)
    finish(world, job)
    assert (job.state, job.problem) == (FAILED, "queue 'target' was deleted")
    assert (job.done, other.ready_count()) == (before, 0)
    assert world.vhost.queues["source"].ready_count() == 2_000 - before


def test_a_user_who_is_made_again_does_not_inherit_the_job_of_the_one_before() -> None:
    world, job = running(Bench(), user="ann")
    done = job.done
    world.users.remove("ann")
    made_user(world, "ann", "first")
    finish(world, job)
    assert (job.state, job.done) == (FAILED, done)
    assert job.problem == "there is no user 'ann' any more, who has started it"


@pytest.mark.parametrize("same", [True, False])
def test_a_job_goes_on_after_a_restart_for_the_user_who_started_it_alone(*, same: bool) -> None:
    bench = Bench()
    world, job = running(bench, user="ann")
    user = world.users.get("ann")
    assert user is not None
    # The user is the same with another password.
    user.password_hash = "second"
    world.registry.turns.next_turn()
    done = job.done
    bench.commit()
    _, found = restarted(after_the_cut(bench, 1), job.number, ann="second" if same else "third")
    if same:
        assert (found.state, found.done) == (DONE, 2_000)
    else:
        assert (found.state, found.done) == (FAILED, done)
        assert "user 'ann' is not the one who has started it" in found.problem


class Slow:
    """An authority of a backend that answers when it is told to.

    Args:
        refused: what it refuses: the names of queues and exchanges, and routing keys.
    """

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.asked: list[Callable[[], None]] = []
        self.known: dict[Question, bool] = {}

    def allows(self, question: Question) -> bool:
        """The decision, once it is there; what is allowed stays so."""
        if question in self.known:
            return self.known[question]
        raise Undecided(lambda done: self.asked.append(partial(self._answer, question, done)))

    def _answer(self, question: Question, done: Callable[[], None]) -> None:
        names = (question.name, question.key)
        self.known[question] = not any(name in self.refused for name in names)
        done()

    def settled(self) -> None:
        """Refusals are asked for again."""
        self.known = {question: True for question, answer in self.known.items() if answer}


def of_backend(world: World, slow: Slow, **target: Any) -> Job:
    """Move "classic" for a user of a backend, answering all that is asked, to the end."""
    user = RemoteUser("bob", (), (slow,))
    context = world.dispatcher.context.on_behalf_of(user)
    orders = Orders("move", "/", "classic", "", user="bob", **target)
    job = world.broker.jobs.start(orders, context.job_rights(orders))
    for _ in range(1_000):
        world.registry.turns.next_turn()
        world.flush()
        world.broker.committed()
        if job.state != RUNNING:
            break
        # What it waits for is not behind it.
        assert not job.cursors or job.cursors[0] <= job.examined
        if slow.asked:
            slow.asked.pop()()
    return job


def test_a_job_waits_for_what_a_backend_decides_about_its_user() -> None:
    world = World()
    queue = filled(world, "classic")
    target = world.vhost.declare_queue("target", durable=True)
    world.vhost.bind("amq.topic", target, "#", {})
    job = of_backend(world, Slow("key.2", "key.3", "key.7"), exchange="amq.topic")
    assert (job.state, job.selected, job.done, job.left) == (DONE, 10, 7, 3)
    assert job.examined == 10
    assert (queue.ready_count(), target.ready_count()) == (3, 7)
    assert "write access to topic 'key.2' in exchange 'amq.topic'" in job.problem


def test_a_job_ends_when_a_backend_refuses_its_user() -> None:
    world = World()
    queue = filled(world, "classic")
    world.vhost.declare_queue("target", durable=True)
    job = of_backend(world, Slow("classic"), routing_key="target")
    assert (job.state, job.done, queue.ready_count()) == (FAILED, 0, 10)
    assert "read access to queue 'classic' in vhost '/' refused for user 'bob'" in job.problem


def test_a_job_that_waits_for_a_backend_can_be_cancelled() -> None:
    world = World()
    filled(world, "classic")
    world.vhost.declare_queue("target", durable=True)
    slow = Slow()
    user = RemoteUser("bob", (), (slow,))
    orders = Orders("move", "/", "classic", "", "", "target", "bob")
    context = world.dispatcher.context.on_behalf_of(user)
    job = world.broker.jobs.start(orders, context.job_rights(orders))
    world.registry.turns.next_turn()
    assert slow.asked
    world.broker.jobs.cancel(job)
    slow.asked.pop()()
    finish(world, job)
    assert (job.state, job.done) == (CANCELLED, 0)


def test_a_job_of_a_user_of_a_backend_is_not_inherited_by_one_of_the_broker() -> None:
    bench = Bench()
    world, job = running(bench, user="ann")
    job.who = "backend"
    world.broker.jobs.write(job)
    bench.commit()
    _, found = restarted(after_the_cut(bench, 1), job.number, ann="first")
    assert (found.state, found.done) == (FAILED, job.done)
    assert "user 'ann' is not the one who has started it" in found.problem
