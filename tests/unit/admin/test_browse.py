"""Browsing shows the messages of a queue by a filter and from any place, and changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harebell.admin.limits import BROWSE_PAYLOAD_BYTES, BROWSE_SLICE_UNITS
from harebell.base.message import Message, Properties
from harebell.front.convert import composed
from harebell.management.control.row_reader import RowReader
from harebell.server.limits import WORK_USER_UNITS
from tests.unit.management.control.test_dispatcher import World
from tests.unit.model.things import Taker
from tests.unit.store.stores import Bench

KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum"},
    "priority": {"x-max-priority": 5},
    "keyed": {"x-group-key": "tenant"},
    "stream": {"x-queue-type": "stream"},
}
DECLARED = sorted(KINDS)
TAKING = [kind for kind in DECLARED if kind != "stream"]
PLAIN = ("classic", "quorum", "keyed", "stream")


def filled(world: World, kind: str, count: int = 10) -> Any:
    """Declare a queue and publish messages to it, numbered from 0."""
    queue = world.vhost.declare_queue(kind, durable=True, arguments=KINDS[kind])
    for number in range(count):
        queue.publish(numbered(number))
    world.flush()
    world.broker.committed()
    return queue


def numbered(number: int) -> Any:
    headers = {"n": number, "tenant": f"t{number % 3}"}
    properties = {"headers": headers, "priority": number % 3, "delivery_mode": 2}
    return composed("shop", f"key.{number}", b'{"n": %d}' % number, properties)


async def rows_of(world: World, name: str, **fields: Any) -> list[dict[str, Any]]:
    """Browse a queue to the end, in as many turns as it takes."""
    answer = await world.dispatcher.serve("queues.browse", {"name": name, **fields})
    assert answer["ok"], answer
    return await read(world, answer["rows"])


async def read(world: World, reader: RowReader) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        asked = asyncio.ensure_future(reader.next())
        while not asked.done():
            await asyncio.sleep(0)
            world.registry.turns.next_turn()
        rows = asked.result()
        if not rows:
            reader.close()
            return found
        found += rows


async def numbers(world: World, name: str, **fields: Any) -> list[int]:
    return [row["properties"]["headers"]["n"] for row in await rows_of(world, name, **fields)]


async def refusal(world: World, name: str, **fields: Any) -> str:
    answer = await world.dispatcher.serve("queues.browse", {"name": name, **fields})
    assert not answer["ok"]
    return str(answer["error"])


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", PLAIN)
async def test_the_messages_come_in_the_order_of_delivery(kind: str) -> None:
    world = World()
    filled(world, kind)
    assert await numbers(world, kind) == list(range(10))


@pytest.mark.asyncio
async def test_a_priority_queue_is_shown_from_the_highest_level() -> None:
    world = World()
    filled(world, "priority")
    assert await numbers(world, "priority") == [2, 5, 8, 1, 4, 7, 0, 3, 6, 9]


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", DECLARED)
async def test_a_filter_selects_and_a_limit_ends(kind: str) -> None:
    world = World()
    filled(world, kind)
    where = "body.n BETWEEN 3 AND 7 AND headers.tenant <> 't1'"
    assert sorted(await numbers(world, kind, where=where)) == [3, 5, 6]
    assert len(await numbers(world, kind, where=where, limit=2)) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", TAKING)
async def test_browsing_changes_neither_order_nor_marks_nor_counts(kind: str) -> None:
    world = World()
    queue = filled(world, kind)
    taken = [queue.get() for _ in range(3)]
    queue.requeue(taken[1][1])
    before = (queue.ready_count(), queue.unacked)
    shown = await numbers(world, kind)
    assert len(await rows_of(world, kind, state="all")) == 10
    assert (queue.ready_count(), queue.unacked) == before
    for _, position, _ in (taken[0], taken[2]):
        queue.settle(position)
    taker = Taker(queue)
    queue.add_consumer(taker)
    delivered = [(int(body[6:-1]), again) for body, _, again in taker.got]
    assert sorted(number for number, _ in delivered) == sorted(shown)
    assert [number for number, again in delivered if again] == [int(taken[1][0].body[6:-1])]


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", TAKING)
async def test_unacknowledged_messages_are_shown_only_if_asked_for(kind: str) -> None:
    world = World()
    queue = filled(world, kind)
    taken = queue.get()
    number = int(taken[0].body[6:-1])
    assert number not in await numbers(world, kind)
    rows = await rows_of(world, kind, state="all")
    states = {row["properties"]["headers"]["n"]: row["state"] for row in rows}
    assert states == {n: "unacknowledged" if n == number else "ready" for n in range(10)}
    assert await numbers(world, kind, state="all", where="state = 'unacknowledged'") == [number]


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", PLAIN)
async def test_browsing_begins_where_it_is_asked_to(kind: str) -> None:
    world = World()
    filled(world, kind)
    assert await numbers(world, kind, **{"from": "last"}) == [9]
    assert await numbers(world, kind, **{"from": "-3"}) == [7, 8, 9]
    assert await numbers(world, kind, **{"from": "-30"}) == list(range(10))
    assert await numbers(world, kind, **{"from": "6"}) == [6, 7, 8, 9]
    assert await numbers(world, kind, **{"from": "60"}) == []
    assert await numbers(world, kind, **{"from": "0"}) == list(range(10))


@pytest.mark.asyncio
async def test_browsing_begins_at_a_time_or_so_long_ago() -> None:
    bench = Bench()
    clock = bench.clock
    world = World(bench.store, clock)
    queue = world.vhost.declare_queue("classic", durable=True)
    for number in range(10):
        clock.ms = 1_800_000_000_000 + number * 60_000
        queue.publish(numbered(number))
    assert await numbers(world, "classic", **{"from": "2m"}) == [7, 8, 9]
    assert await numbers(world, "classic", **{"from": "2027-01-15T08:05:00Z"}) == [5, 6, 7, 8, 9]
    assert await numbers(world, "classic", where="age <= '3m'") == [6, 7, 8, 9]
    assert await numbers(world, "classic", where="timestamp < '2027-01-15T08:02:00Z'") == [0, 1]


@pytest.mark.asyncio
async def test_an_impossible_browse_is_refused_with_a_way_out() -> None:
    world = World()
    filled(world, "priority")
    assert "no queue 'missing' in vhost '/'" in await refusal(world, "missing")
    assert "no common order" in await refusal(world, "priority", **{"from": "last"})
    assert "say first, last, an offset" in await refusal(world, "priority", **{"from": "soon"})
    assert "did you mean 'size'?" in await refusal(world, "priority", where="sice > 1")
    assert "say how many" in await refusal(world, "priority", limit=-1)
    assert "truncated to 0 up to" in await refusal(
        world, "priority", truncate=BROWSE_PAYLOAD_BYTES + 1
    )


@pytest.mark.asyncio
async def test_messages_published_meanwhile_are_not_shown_and_those_that_go_are_left_out() -> None:
    world = World()
    queue = filled(world, "classic", 2_000)
    answer = await world.dispatcher.serve("queues.browse", {"name": "classic"})
    first = await answer["rows"].next()
    queue.publish(numbered(5_000))
    for _ in range(100):
        queue.settle(queue.get()[1])
    shown = [row["properties"]["headers"]["n"] for row in first]
    shown += [row["properties"]["headers"]["n"] for row in await read(world, answer["rows"])]
    assert shown == [*range(len(first)), *range(max(len(first), 100), 2_000)]


@pytest.mark.asyncio
async def test_a_queue_that_is_deleted_meanwhile_ends_it_with_an_error() -> None:
    world = World()
    filled(world, "classic", 2_000)
    answer = await world.dispatcher.serve("queues.browse", {"name": "classic"})
    await answer["rows"].next()
    world.vhost.delete_queue("classic")
    with pytest.raises(Exception, match="was deleted meanwhile"):
        await answer["rows"].next()
    answer["rows"].close()


@pytest.mark.asyncio
async def test_a_slice_costs_what_it_may_and_a_search_takes_many_turns() -> None:
    world = World()
    filled(world, "classic", 20_000)
    answer = await world.dispatcher.serve(
        "queues.browse", {"name": "classic", "where": "body.n = 19999"}
    )
    asked = asyncio.ensure_future(answer["rows"].next())
    turns, work = 0, world.broker.work
    await asyncio.sleep(0)
    while not asked.done():
        before = work.spent
        world.registry.turns.next_turn()
        turns += 1
        assert work.spent - before <= WORK_USER_UNITS + 3 * BROWSE_SLICE_UNITS
        await asyncio.sleep(0)
    assert turns >= 20_000 * 4 // WORK_USER_UNITS
    assert [row["offset"] for row in asked.result()] == [19_999]
    answer["rows"].close()


@pytest.mark.asyncio
async def test_bodies_are_shown_as_text_or_base64_and_up_to_a_size() -> None:
    world = World()
    queue = world.vhost.declare_queue("bodies")
    for body in ("aé".encode(), b"\xff\x00", b""):
        queue.publish(composed("", "bodies", body, {}))
    rows = await rows_of(world, "bodies", truncate=2)
    assert [(row["payload"], row["payload_encoding"]) for row in rows] == [
        ("a", "string"),
        ("/wA=", "base64"),
        ("", "string"),
    ]
    assert [row["payload_bytes"] for row in rows] == [3, 2, 0]
    rows = await rows_of(world, "bodies", encoding="base64")
    assert [row["payload"] for row in rows] == ["YcOp", "/wA=", ""]


@pytest.mark.asyncio
async def test_an_expired_message_is_not_shown() -> None:
    world = World()
    queue = world.vhost.declare_queue("ttl", arguments={"x-message-ttl": 1000})
    queue.publish(numbered(0))
    assert await numbers(world, "ttl") == [0]
    world.broker.clock.steady += 2000
    assert await numbers(world, "ttl") == []


_TAGGED = {
    "t": (b"\1", "bool", True),
    "b": (b"\xff", "byte", -1),
    "B": (b"\xff", "unsignedbyte", 255),
    "s": (b"\0\1", "short", 1),
    "u": (b"\0\1", "unsignedshort", 1),
    "I": (b"\0\0\0\1", "signedint", 1),
    "i": (b"\0\0\0\1", "unsignedint", 1),
    "l": (bytes(7) + b"\1", "long", 1),
    "d": (b"\x3f\xf0" + bytes(6), "double", 1.0),
    "D": (b"\2\0\0\4\xe2", "decimal", {"$decimal": "12.50"}),
    "S": (b"\0\0\0\1a", "longstr", "a"),
    "x": (b"\0\0\0\1\xff", "binary", {"$binary": "/w=="}),
    "T": (bytes(7) + b"\1", "timestamp", {"$timestamp": 1}),
    "A": (b"\0\0\0\1V", "array", [None]),
    "F": (bytes(4), "table", {}),
    "V": (b"", "void", None),
}
"""A value of each type of header: its octets, its name, and how publishing takes it."""


@pytest.mark.asyncio
async def test_the_types_of_headers_are_told_when_they_are_asked_for() -> None:
    world = World()
    queue = world.vhost.declare_queue("classic", durable=True)
    table = b"".join(
        b"\1" + tag.encode() + tag.encode() + octets for tag, (octets, *_) in _TAGGED.items()
    )
    raw = b"\x20\0" + len(table).to_bytes(4) + table
    queue.publish(Message("", "classic", Properties(raw, has_headers=True), b""))
    queue.publish(composed("", "classic", b"", {}))
    first, second = await rows_of(world, "classic", exact=True)
    assert first["header_types"] == {tag: name for tag, (_, name, _) in _TAGGED.items()}
    assert first["kept_headers"] == {tag: kept for tag, (*_, kept) in _TAGGED.items()}
    assert (second["header_types"], second["kept_headers"]) == ({}, {})
    assert "header_types" not in (await rows_of(world, "classic"))[0]
