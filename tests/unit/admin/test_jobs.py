"""Jobs move, copy, remove and retry what a filter selects, whole over a crash, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from harebell.front.convert import EDITOR, composed
from harebell.model.jobs import CANCELLED, DONE, FAILED, RUNNING, Job, Orders
from tests.sim.disk import PowerCut, Random
from tests.unit.admin.test_browse import KINDS, TAKING, filled, numbered, numbers
from tests.unit.model.things import Taker
from tests.unit.server.control.test_dispatcher import World
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
async def test_what_is_unacknowledged_is_not_touched(kind: str) -> None:
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
async def test_what_cannot_be_is_refused_before_anything_happens() -> None:
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
