"""Dead letters are grouped, and their groups are retried, discarded, and brought back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harebell.admin.commands import dead_letters
from harebell.admin.commands import jobs as commands
from harebell.admin.commands.messages import browse
from harebell.admin.limits import DISCARD_REASON_CHARACTERS, RETRY_BODY_BYTES
from harebell.admin.looking import Looking
from harebell.auth.authority import Undecided
from harebell.auth.permissions import Permissions
from harebell.auth.users import User
from harebell.base.errors import Refusal
from harebell.base.message import FAMILY_1_0, FAMILY_1_0_SECTIONS, Message, Properties
from harebell.base.slices import at_once
from harebell.front.convert import EDITOR, composed
from harebell.front.convert.dispatch import converted
from harebell.model import placed
from harebell.model.jobs import DONE, Job, decode
from harebell.model.limits import JOB_RANGES
from tests.unit.admin.test_browse import filled, rows_of
from tests.unit.admin.test_jobs import act, ended, finish
from tests.unit.management.control.test_dispatcher import World
from tests.unit.model.things import Taker
from tests.unit.store.stores import Bench

HOSTILE = 'it\'s "a" `b`\n<img src=x onerror=alert(1)>'


def letter(queue: str = "orders", key: str = "eu", **headers: Any) -> Any:
    """A message as it is after it died."""
    death = {"x-first-death-queue": queue, "x-first-death-reason": "rejected", **headers}
    reason = death["x-first-death-reason"]
    event = {"queue": queue, "reason": reason, "count": 1, "routing-keys": [key]}
    every = {"headers": {"x-death": [event], **death}, "delivery_mode": 2}
    return composed("dlx", "failed", b'{"n": 1}', every)


def with_letters(world: World, *letters: Any, name: str = "dead", **arguments: Any) -> Any:
    queue = world.vhost.declare_queue(name, durable=True, **arguments)
    for each in letters:
        queue.publish(each)
    world.flush()
    world.broker.committed()
    return queue


async def listed(world: World, **fields: Any) -> dict[str, Any]:
    answer = await act(world, "dead-letters.list", **fields)
    assert answer["ok"], answer
    found: dict[str, Any] = answer["answer"]
    return found


@pytest.mark.asyncio
async def test_dead_letters_are_grouped_by_their_death_and_their_key() -> None:
    bench = Bench()
    world = World(bench.store, bench.clock)
    filled(world, "classic")
    with_letters(
        world,
        *(letter(**{"x-exception-message": f"order {n} is late"}) for n in range(3)),
        letter(key="us"),
        letter("invoices", **{"x-first-death-reason": "expired"}),
    )
    found = await listed(world)
    groups = [
        (g["messages"], g["queue"], g["origin"], g["reason"], g["error"], g["routing_key"])
        for g in found["groups"]
    ]
    assert groups == [
        (3, "dead", "orders", "rejected", "order 0 is late", "eu"),
        (1, "dead", "orders", "rejected", None, "us"),
        (1, "dead", "invoices", "expired", None, "eu"),
    ]
    assert (found["dead_letters"], found["complete"], found["left"]) == (5, True, 0)
    assert found["groups"][0]["bytes"] == 24
    assert sum(count for _, count in found["groups"][0]["times"]) == 3


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ["plain", HOSTILE, "order 17 \\ %_", "é漢字"])
async def test_the_condition_of_a_group_selects_this_group_and_no_other(text: str) -> None:
    world = World()
    letters = [letter(text, text, **{"x-error": text}), letter(text, text), letter("orders", text)]
    with_letters(world, *letters, letter("orders", "eu"), *letters)
    for group in (await listed(world))["groups"]:
        rows = await rows_of(world, "dead", where=group["where"])
        assert len(rows) == group["messages"] > 0
        headers = [row["properties"]["headers"] for row in rows]
        assert {each["x-death"][0]["routing-keys"][0] for each in headers} == {text, "eu"} & {
            group["routing_key"]
        }
        assert {each["x-first-death-queue"] for each in headers} == {group["origin"]}


@pytest.mark.asyncio
async def test_a_queue_without_dead_letters_at_its_head_is_passed_by_unless_it_is_named() -> None:
    world = World()
    queue = filled(world, "classic", 50)
    queue.publish(letter())
    found = await listed(world)
    assert (found["groups"], found["queues_passed_by"], found["examined"]) == ([], 1, 20)
    named = await listed(world, queue="classic")
    assert [group["messages"] for group in named["groups"]] == [1]
    assert (named["examined"], named["complete"]) == (51, True)


@pytest.mark.asyncio
async def test_groups_and_looks_are_bounded_and_the_answer_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setattr(dead_letters, "DEAD_LETTER_GROUPS", 2)
    with_letters(world, *(letter(key=f"k{n % 3}") for n in range(9)))
    found = await listed(world)
    assert (len(found["groups"]), found["other"], found["complete"]) == (2, 3, False)
    monkeypatch.setattr(dead_letters, "DEAD_LETTER_PROBES", 1)
    monkeypatch.setattr(dead_letters, "DEAD_LETTER_LOOKS", 4)
    found = await listed(world)
    assert (found["examined"], found["left"], found["complete"]) == (5, 4, False)
    monkeypatch.setattr(dead_letters, "DEAD_LETTER_QUEUES", 0)
    found = await listed(world)
    assert (found["queues_left"], found["complete"]) == (1, False)


@pytest.mark.asyncio
async def test_every_queue_has_its_share_of_the_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr(dead_letters, "DEAD_LETTER_PROBES", 1)
    monkeypatch.setattr(dead_letters, "DEAD_LETTER_LOOKS", 20)
    for name, count in (("a", 5), ("b", 100), ("c", 100)):
        with_letters(world, *(letter() for _ in range(count)), name=name)
    found = {group["queue"]: group["messages"] for group in (await listed(world))["groups"]}
    assert found["a"] == 5
    assert min(found["b"], found["c"]) >= 7
    assert sum(found.values()) <= 3 + 20


@pytest.mark.asyncio
async def test_a_long_look_takes_turns_and_survives_that_its_queue_is_deleted() -> None:
    world = World()
    with_letters(world, *(letter() for _ in range(2_000)), name="a")
    with_letters(world, *(letter() for _ in range(2_000)), name="b")
    asked = world.ask("dead-letters.list")
    await asyncio.sleep(0)
    world.registry.turns.next_turn()
    assert not asked.done()
    world.vhost.delete_queue("b")
    assert await world.turns(asked) > 1
    found = asked.result()["answer"]
    assert {g["queue"]: g["messages"] for g in found["groups"]}["a"] == 2_000


def test_a_queue_that_was_deleted_before_its_turn_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    for name in ("a", "b"):
        with_letters(world, *(letter() for _ in range(1_000)), name=name)
    walks: list[Any] = []
    walk = dead_letters._Walk
    monkeypatch.setattr(
        dead_letters, "_Walk", lambda *about: walks.append(walk(*about)) or walks[-1]
    )
    steps = dead_letters.list_groups(world.dispatcher.context)
    while len(walks) < 2 or walks[1].looked <= dead_letters.DEAD_LETTER_PROBES:
        next(steps)
    world.vhost.delete_queue("a")
    charged: list[str] = []
    monkeypatch.setattr(Looking, "charge", lambda self: charged.append(self.queue.name))
    at_once(steps)
    assert "a" not in charged
    assert [each.looked for each in walks] == [dead_letters.DEAD_LETTER_PROBES, 1_000]


def test_times_are_widened_so_that_they_stay_few() -> None:
    times = dead_letters._Times()
    for minute in range(0, 10_000, 7):
        times.add(minute * 60_000)
    assert len(times.counts) <= 48
    assert sum(times.counts.values()) == len(range(0, 10_000, 7))


@pytest.mark.asyncio
async def test_a_user_sees_the_groups_of_queues_that_may_be_read() -> None:
    world = World()
    with_letters(world, letter(), name="mine")
    with_letters(world, letter("secret", "secret"), name="theirs")
    user = User("ann", "", frozenset({"monitoring"}))
    user.permissions["/"] = Permissions("", "", "^mine$")
    context = world.dispatcher.context.on_behalf_of(user)
    found = at_once(dead_letters.list_groups(context))
    assert [group["queue"] for group in found["groups"]] == ["mine"]
    assert "secret" not in str(found)
    assert found["queues"] == 1


@pytest.mark.parametrize("tag", ["management", "monitoring", "administrator"])
@pytest.mark.parametrize("read", ["", ".*", "^a", "b$", "^(a|b)$", "^none$"])
def test_groups_are_of_queues_that_the_user_may_browse_and_of_all_of_them(
    tag: str, read: str
) -> None:
    world = World()
    names = ("a", "b", "ab", "c")
    for name in names:
        with_letters(world, letter(f"of {name}"), name=name)
    user = User("ann", "", frozenset({tag}))
    user.permissions["/"] = Permissions("", "", read)
    context = world.dispatcher.context.on_behalf_of(user)

    def may_browse(name: str) -> bool:
        try:
            browse(context, name)
        except Refusal:
            return False
        return True

    found = at_once(dead_letters.list_groups(context))
    assert {group["queue"] for group in found["groups"]} == set(filter(may_browse, names))
    for name in names:
        assert (f"'of {name}'" in str(found)) is may_browse(name)
    hidden = [name for name in names if not may_browse(name)]
    for name in hidden:
        with pytest.raises(Refusal):
            at_once(dead_letters.list_groups(context, queue=name))


def test_what_a_backend_says_of_a_queue_is_asked_before_a_message_is_looked_at() -> None:
    class Asked(User):
        def allows(self, vhost: str, action: str, kind: str, name: str) -> bool:
            raise Undecided(lambda done: None)

    world = World()
    with_letters(world, letter())
    context = world.dispatcher.context.on_behalf_of(Asked("ann", "", frozenset({"management"})))
    with pytest.raises(Undecided):
        at_once(dead_letters.list_groups(context))


@pytest.mark.asyncio
async def test_the_command_line_says_what_there_is() -> None:
    world = World()
    with_letters(world, letter(**{"x-error": "a\x1b[2Jb"}), letter("x\ny"))
    found = await listed(world)
    text = dead_letters._report(found)
    assert text.endswith("2 dead letters in vhost '/'")
    assert "death.queue = 'orders'" in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 4
    assert dead_letters._report(await listed(World())) == "0 dead letters in vhost '/'"


# --- retry, discard and undo ----------------------------------------------------------------------


def bodies(world: World, name: str) -> list[tuple[bytes, dict[str, Any]]]:
    queue, found = world.vhost.queues[name], []
    while (taken := queue.get()) is not None:
        message = taken[0]
        headers = dict(EDITOR.headers_of(message)) if message.has_headers else {}
        found.append((EDITOR.basic_of(message).body, headers))
    return found


def keys_of(rows: list[dict[str, Any]]) -> list[str]:
    return [row["properties"]["headers"]["x-death"][0]["routing-keys"][0] for row in rows]


@pytest.mark.asyncio
async def test_a_retry_finds_the_queue_in_the_oldest_entry_of_x_death() -> None:
    world = World()
    world.vhost.declare_queue("orders")
    deaths = [{"queue": "late", "reason": "expired"}, {"queue": "orders", "reason": "rejected"}]
    with_letters(world, composed("", "dead", b"1", {"headers": {"x-death": deaths}}))
    job = await ended(world, "dead-letters.retry", name="dead", where="true")
    assert (job.state, job.done) == (DONE, 1)
    assert bodies(world, "orders") == [(b"1", {"x-retries": 1, "x-retried-from": "dead"})]


@pytest.mark.asyncio
async def test_a_retry_gives_what_it_selects_another_body_and_other_headers() -> None:
    world = World()
    world.vhost.declare_queue("orders")
    with_letters(world, letter(tenant="a", gone="x"), letter())
    headers = {"tenant": "b", "gone": None, "count": 7, "x-death": "forged", "x-retries": 99}
    job = await ended(
        world,
        *("queues.retry",),
        name="dead",
        where="headers.tenant = 'a'",
        payload="aGFsbG8=",
        payload_encoding="base64",
        headers=headers,
    )
    assert (job.done, job.left) == (1, 0)
    about = {"x-retries": 1, "x-retried-from": "dead"}
    ((body, found),) = bodies(world, "orders")
    assert body == b"hallo"
    assert {k: v for k, v in found.items() if k != "x-death"} == {
        "tenant": "b",
        "count": 7,
        **about,
    }
    assert "x-death" not in found
    row = (await act(world, "jobs.show", id=job.number))["answer"]
    assert "aGFsbG8=" not in str(row)


@pytest.mark.asyncio
async def test_the_body_of_a_message_of_amqp_1_0_is_replaced_if_it_is_data() -> None:
    world = World()
    world.vhost.declare_queue("orders")
    data = converted(letter(), FAMILY_1_0)
    raw = Properties(data.raw, data.delivery_mode, -1, True, family=FAMILY_1_0_SECTIONS)
    value = Message("dlx", "failed", raw, b"\x00\x53\x77\xa1\x03abc")
    queue = with_letters(world, data, value)
    job = await ended(world, "queues.retry", name="dead", where="true", payload="edited")
    assert (job.done, job.left) == (1, 1)
    assert "no data" in job.problem
    (message, _, _) = world.vhost.queues["orders"].get()
    assert (message.family, message.body) == (FAMILY_1_0, b"edited")
    assert queue.ready_count() == 1
    # Without another body it goes as it is.
    await ended(world, "queues.retry", name="dead", where="true", headers={"tenant": "eu"})
    (message, _, _) = world.vhost.queues["orders"].get()
    assert (message.family, message.body) == (FAMILY_1_0_SECTIONS, value.body)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"payload": "a" * (RETRY_BODY_BYTES + 1)}, "at most 262144 are allowed"),
        ({"payload": "?", "payload_encoding": "base64"}, "the payload is not base64"),
        ({"payload": "?", "payload_encoding": "hex"}, "payload_encoding is 'hex'"),
        ({"headers": {"n": 2**70}}, "headers"),
        ({"headers": {"a" * 300: 1}}, "headers"),
    ],
)
async def test_a_wrong_edit_is_refused(fields: dict[str, Any], text: str) -> None:
    world = World()
    queue = with_letters(world, letter())
    answer = await act(world, "queues.retry", name="dead", where="true", **fields)
    assert text in answer["error"]
    assert queue.ready_count() == 1
    assert world.broker.jobs.all() == []


@pytest.mark.asyncio
async def test_an_edited_retry_publishes_nothing_under_the_name_of_another_user() -> None:
    world = World()
    user = world.users.add("ann", "x", tags=("management",), vhosts=("/",))
    world.vhost.declare_queue("orders")
    theirs = letter()
    headers = dict(EDITOR.headers_of(theirs))
    queue = with_letters(world, composed("", "eu", b"1", {"headers": headers, "user_id": "bob"}))
    context = world.dispatcher.context.on_behalf_of(user)
    row = commands.retry(context, "dead", "true", payload="2")
    job = world.broker.jobs.find(row["id"])
    assert job is not None
    finish(world, job)
    assert (job.done, job.left) == (0, 1)
    assert "user" in job.problem
    assert queue.ready_count() == 1


@pytest.mark.asyncio
async def test_a_discard_can_be_undone_and_leaves_the_messages_as_they_were() -> None:
    world = World()
    failed = letter(key="us")
    failed.deliveries = 3
    with_letters(world, letter(), failed, letter("invoices"))
    with_letters(world, name="held")
    before = await rows_of(world, "dead")
    assert [row["delivery_count"] for row in before] == [0, 3, 0]
    where = "death.queue = 'orders'"
    job = await ended(
        world, "queues.discard", name="dead", where=where, reason="known fault", hold="held"
    )
    assert (job.state, job.done, job.orders.reason) == (DONE, 2, "known fault")
    held = await rows_of(world, "held")
    assert keys_of(held) == ["eu", "us"]
    assert {row["routing_key"] for row in held} == {"failed"}
    marks = held[0]["properties"]["headers"]
    assert marks["x-discard-reason"] == "known fault"
    assert marks["x-discard-queue"] == "dead"
    assert any("known fault" in line for line in world.lines)
    # Held dead letters are dead letters: they can be tried again from there.
    groups = {(g["queue"], g["routing_key"]) for g in (await listed(world))["groups"]}
    assert groups == {("held", "eu"), ("held", "us"), ("dead", "eu")}
    undone = await ended(world, "jobs.undo", id=job.number)
    assert (undone.state, undone.done) == (DONE, 2)
    after = await rows_of(world, "dead")
    for rows in (before, after):
        for row in rows:
            for name in ("offset", "timestamp"):
                del row[name]
    assert sorted(map(str, after)) == sorted(map(str, before))
    assert await rows_of(world, "held") == []


@pytest.mark.asyncio
async def test_an_undo_brings_back_what_its_job_has_discarded_and_nothing_else() -> None:
    world = World()
    with_letters(world, letter(), letter(key="us"))
    with_letters(world, name="held")
    first = await ended(
        world, "queues.discard", name="dead", where="death.routing_key = 'eu'", hold="held"
    )
    await ended(world, "queues.discard", name="dead", where="true", hold="held")
    await ended(world, "dead-letters.undo", id=first.number)
    assert keys_of(await rows_of(world, "dead")) == ["eu"]
    assert keys_of(await rows_of(world, "held")) == ["us"]


@pytest.mark.asyncio
@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}], ids=["classic", "priority"])
async def test_what_is_discarded_twice_keeps_its_first_marks_and_each_undo_takes_one_back(
    arguments: dict[str, Any],
) -> None:
    world = World()
    letters = [letter(key="eu"), letter(key="us"), letter(key="de")]
    with_letters(world, *letters)
    for name in ("held", "other"):
        with_letters(world, name=name, arguments=arguments)
    before = [headers for _, headers in bodies(world, "dead")]
    with_letters(world, *letters)
    first = await ended(
        world, "queues.discard", name="dead", where="true", hold="held", reason="known"
    )
    marks = [row["properties"]["headers"] for row in await rows_of(world, "held")]
    second = await ended(
        world, "queues.discard", name="held", where="true", hold="other", reason="again"
    )
    for row, was in zip(await rows_of(world, "other"), marks, strict=True):
        now = row["properties"]["headers"]
        assert (now["x-discard-reason"], now["x-discard-queue"]) == ("again", "held")
        (earlier,) = now["x-discard-earlier"]
        assert earlier == {n: v for n, v in was.items() if n.startswith("x-discard-")}
    undone = await ended(world, "jobs.undo", id=second.number)
    assert (undone.state, undone.done, undone.problem) == (DONE, 3, "")
    assert [row["properties"]["headers"] for row in await rows_of(world, "held")] == marks
    undone = await ended(world, "jobs.undo", id=first.number)
    assert (undone.state, undone.done) == (DONE, 3)
    assert [headers for _, headers in bodies(world, "dead")] == before
    assert await rows_of(world, "held") == []


def forged(number: int) -> Any:
    marks = {"x-discard-job": number, "x-discard-queue": "dead"}
    return letter(key="forged", **marks, **{"x-discard-earlier": [marks]})


@pytest.mark.asyncio
async def test_an_undo_takes_nothing_that_others_have_published_with_the_number_of_its_job() -> (
    None
):
    world = World()
    with_letters(world, letter())
    for name in ("held", "other"):
        with_letters(world, name=name)
    first = await ended(world, "queues.discard", name="dead", where="true", hold="held")
    with_letters(world, forged(first.number), name="held")
    # Nor what another discard has moved and its undo has moved back.
    again = "headers.x-discard-queue = 'dead' AND death.routing_key = 'forged'"
    second = await ended(world, "queues.discard", name="held", where=again, hold="other")
    assert second.done == 1
    await ended(world, "jobs.undo", id=second.number)
    assert len(await rows_of(world, "held")) == 2
    undone = await ended(world, "jobs.undo", id=first.number)
    assert (undone.state, undone.done) == (DONE, 1)
    assert keys_of(await rows_of(world, "dead")) == ["eu"]
    assert keys_of(await rows_of(world, "held")) == ["forged"]


@pytest.mark.asyncio
async def test_a_place_that_a_discard_did_not_take_is_not_its_own() -> None:
    """A consumer without acknowledgements takes what never gets a position."""
    world = World()
    with_letters(world, letter())
    held = with_letters(world, name="held")
    taker = Taker(held, no_ack=True)
    held.add_consumer(taker)
    job = await ended(world, "queues.discard", name="dead", where="true", hold="held")
    assert (job.done, len(taker.got)) == (1, 1)
    held.remove_consumer(taker)
    with_letters(world, forged(job.number), name="held")
    undone = await ended(world, "jobs.undo", id=job.number)
    assert (undone.done, held.ready_count()) == (0, 1)


def test_positions_are_few_ranges_and_no_more_than_there_is_room_for() -> None:
    ranges: list[list[int]] = []
    for position in (8, 12, 9, 16, 13):
        placed.add(ranges, position, 4)
    assert ranges == [[8, 16], [9, 13]]
    assert [at for at in range(20) if placed.has(ranges, at, 4)] == [8, 9, 12, 13, 16]
    full = [[at, at] for at in range(0, 4 * JOB_RANGES, 4)]
    assert not placed.takes(full, 9_999, 1)
    placed.add(full, 9_999, 1)
    assert not placed.has(full, 9_999, 1)
    assert placed.takes(full, 1, 1)


@pytest.mark.asyncio
async def test_a_discard_ends_where_its_positions_cannot_be_noted_any_more() -> None:
    world = World()
    queue = with_letters(world, letter())
    held = with_letters(world, name="held")
    world.broker.work.later = lambda step: steps.append(step)
    steps: list[Any] = []
    answer = await act(world, "queues.discard", name="dead", where="true", hold="held")
    job = world.broker.jobs.find(answer["answer"]["id"])
    assert job is not None
    job.placed[:] = [[-9, -9]] * JOB_RANGES
    steps[0]()
    assert (job.done, job.left, queue.ready_count(), held.ready_count()) == (0, 1, 1, 0)
    assert "others publish to queue 'held'" in job.problem


@pytest.mark.asyncio
async def test_a_discard_without_a_queue_that_holds_removes_and_cannot_be_undone() -> None:
    world = World()
    queue = with_letters(world, letter())
    job = await ended(world, "queues.discard", name="dead", where="true", reason="old")
    assert (job.orders.verb, job.done, queue.ready_count()) == ("remove", 1, 0)
    answer = await act(world, "jobs.undo", id=job.number)
    assert "cannot be undone" in answer["error"]
    queue.publish(letter())
    unnamed = await act(world, "queues.discard", name="dead", where="true", hold="")
    assert "no queue ''" in unnamed["error"]
    assert queue.ready_count() == 1


@pytest.mark.asyncio
async def test_a_running_discard_cannot_be_undone_and_a_long_reason_is_refused() -> None:
    world = World()
    with_letters(world, letter())
    with_letters(world, name="held")
    world.broker.work.later = lambda step: None
    fields = {"name": "dead", "where": "true", "hold": "held"}
    answer = await act(world, "queues.discard", **fields)
    undo = await act(world, "jobs.undo", id=answer["answer"]["id"])
    assert "is running" in undo["error"]
    long = "r" * (DISCARD_REASON_CHARACTERS + 1)
    refused = await act(world, "queues.discard", **fields, reason=long)
    assert "at most 1000 are allowed" in refused["error"]
    missing = await act(world, "queues.discard", **{**fields, "hold": "nope"})
    assert "no queue 'nope'" in missing["error"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("about", "text"),
    [
        ({"arguments": {"x-queue-type": "stream"}}, "cannot be moved back"),
        ({"arguments": {"x-last-value-key": "k"}}, "the last message of each key"),
        ({"auto_delete": True}, "is deleted with"),
        ({"exclusive": True, "owner": object()}, "is deleted with"),
        ({"durable": False}, "is not durable"),
    ],
)
async def test_a_queue_that_cannot_hold_messages_holds_no_discard(
    about: dict[str, Any], text: str
) -> None:
    world = World()
    queue = with_letters(world, letter())
    world.vhost.declare_queue("held", **{"durable": True, **about})
    answer = await act(world, "queues.discard", name="dead", where="true", hold="held")
    assert text in answer["error"]
    assert queue.ready_count() == 1


@pytest.mark.asyncio
async def test_neither_a_discard_nor_its_undo_makes_a_full_queue_drop_its_oldest() -> None:
    world = World()
    queue = with_letters(world, letter(), letter(), letter(), arguments={"x-max-length": 3})
    held = with_letters(world, name="held", arguments={"x-max-length": 2})
    job = await ended(world, "queues.discard", name="dead", where="true", hold="held")
    assert (job.done, job.left, job.problem) == (2, 1, "queue 'held' is full")
    for each in (letter(), letter()):
        queue.publish(each)
    undone = await ended(world, "jobs.undo", id=job.number)
    assert (undone.done, undone.left, undone.problem) == (0, 2, "queue 'dead' is full")
    assert (queue.ready_count(), held.ready_count()) == (3, 2)


def test_the_record_of_a_job_of_before_has_no_edits() -> None:
    from harebell.model.jobs import Orders

    job = Job(1, Orders("retry", "/", "dead", body="eA==", headers="", reason="r"), 5)
    again = decode(job.encode())
    assert again is not None
    assert again.orders == job.orders
    old = job.encode()
    for name in (b'"reason":"r",', b'"body":"eA==",', b'"headers":"",'):
        assert name in old
        old = old.replace(name, b"")
    before = decode(old)
    assert before is not None
    assert before.orders == Orders("retry", "/", "dead")


def test_a_user_without_rights_on_the_holding_queue_undoes_nothing() -> None:
    world = World()
    with_letters(world, letter())
    with_letters(world, name="held")
    world.broker.work.later = lambda step: None
    row = commands.discard(world.dispatcher.context, "dead", "true", hold="held")
    job = world.broker.jobs.find(row["id"])
    assert job is not None
    world.broker.jobs.cancel(job)
    user = User("ann", "", frozenset({"monitoring"}))
    user.permissions["/"] = Permissions("", ".*", "^dead$")
    context = world.dispatcher.context.on_behalf_of(user)
    with pytest.raises(Refusal, match="'held'"):
        commands.undo(context, row["id"])
