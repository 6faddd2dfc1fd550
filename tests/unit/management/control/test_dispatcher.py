"""Commands that are long go in slices; others are served in between, and nothing is left undone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import msgspec
import pytest

from harebell.admin.context import AdminContext
from harebell.auth.password_hashes import SHA256
from harebell.auth.users import User, Users
from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.ports import Store
from harebell.base.work import Work
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.convert import EDITOR, headers_of
from harebell.management.control.dispatcher import Dispatcher
from harebell.management.json_rows import EncodedRows
from harebell.management.limits import COMMAND_ENTRY_UNITS
from harebell.model.broker import Broker
from harebell.model.settings.ceilings import Ceilings
from harebell.server.limits import WORK_USER_UNITS
from harebell.store.log.memory import MemoryDefinitions, MemoryStore
from tests.unit.model.things import message

MANY = 3 * WORK_USER_UNITS // COMMAND_ENTRY_UNITS


class Gathering(MemoryDefinitions):
    """Definitions of which nothing waits to be written."""

    gathered = False


class World:
    """A dispatcher on a broker in memory, whose turns come when the test says so.

    Args:
        store: the store of the broker; in memory by default.
        clock: its clock.
    """

    def __init__(self, store: Store | None = None, clock: Clock | None = None) -> None:
        self.lines: list[str] = []
        self.users = Users(bytes, algorithm=SHA256)
        work = Work()
        self.broker = Broker(
            store or MemoryStore(Gauge()), Gauge(), headers_of, EDITOR, clock or Clock(), work=work
        )
        self.registry = ConnectionRegistry(Gauge(), work)
        self.registry.turns.limit(WORK_USER_UNITS, lambda: None)
        definitions: Any = Gathering()
        context = AdminContext(
            self.broker,
            self.users,
            self.registry,
            definitions,
            lambda: 0.0,
            lambda _, line: self.lines.append(line),
        )
        self.dispatcher = Dispatcher(context, self.flush)
        self.vhost = self.broker.vhosts["/"]

    def flush(self) -> None:
        """Everything in memory is durable."""
        commit = self.broker.commit
        commit.done = commit.ticket
        for waiting in list(self.registry.waiting):
            del self.registry.waiting[waiting]
            waiting.committed()

    async def turns(self, asked: asyncio.Task[dict[str, Any]]) -> int:
        """Have turns until the answer is there; how many it took."""
        count = 0
        while not asked.done():
            await asyncio.sleep(0)
            if self.registry.turns.busy:
                count += 1
                self.registry.turns.next_turn()
        return count

    def ask(self, command: str, **fields: Any) -> asyncio.Task[dict[str, Any]]:
        return asyncio.ensure_future(self._served(command, fields))

    async def _served(self, command: str, fields: dict[str, Any]) -> dict[str, Any]:
        answer = await self.dispatcher.serve(command, fields)
        rows = answer.get("answer")
        if isinstance(rows, EncodedRows):
            answer["answer"] = msgspec.json.decode(b"".join(rows.pieces))
        return answer


@pytest.mark.asyncio
async def test_a_long_list_takes_several_turns_and_has_everything() -> None:
    world = World()
    names = [f"q{number:05}" for number in range(MANY)]
    for name in names:
        world.vhost.declare_queue(name)
    asked = world.ask("queues.list")
    assert await world.turns(asked) >= 3
    assert [row["name"] for row in asked.result()["answer"]] == names


@pytest.mark.asyncio
async def test_an_export_is_made_and_encoded_in_several_turns_each_and_has_everything() -> None:
    world = World()
    names = [f"u{number:05}" for number in range(MANY)]
    for name in names:
        world.users.put(User(name, ""))
    asked = world.ask("definitions.export")
    # Users, and their encoded lines: `MANY` fills three turns.
    assert await world.turns(asked) >= 6
    assert [user["name"] for user in asked.result()["answer"]["users"]] == names


@pytest.mark.asyncio
async def test_rows_that_go_during_a_listing_are_left_out_and_the_rest_is_there() -> None:
    world = World()
    names = [f"q{number:05}" for number in range(MANY)]
    for name in names:
        world.vhost.declare_queue(name)
    asked = world.ask("queues.list")
    await asyncio.sleep(0)
    world.vhost.delete_queue(names[-1], None)
    await world.turns(asked)
    assert [row["name"] for row in asked.result()["answer"]] == names[:-1]


@pytest.mark.asyncio
async def test_a_long_import_takes_several_turns_and_others_are_served_meanwhile() -> None:
    world = World()
    queues = [{"name": f"q{number}", "vhost": "/", "durable": True} for number in range(MANY)]
    asked = world.ask("definitions.import", definitions={"queues": queues})
    await asyncio.sleep(0)
    short = world.ask("queues.list")
    await world.turns(short)
    assert not asked.done()
    await world.turns(asked)
    assert asked.result()["answer"]["counts"]["queues"] == MANY
    assert len(world.vhost.queues) == MANY


@pytest.mark.asyncio
async def test_an_entry_for_which_somebody_took_the_room_during_an_import_is_named() -> None:
    world = World()
    world.broker.limit(Ceilings(queues=MANY))
    queues = [{"name": f"q{number}", "vhost": "/", "durable": True} for number in range(MANY)]
    asked = world.ask("definitions.import", definitions={"queues": queues})
    while not world.vhost.queues:
        await asyncio.sleep(0)
        world.registry.turns.next_turn()
    last = queues[-1]["name"]
    assert last not in world.vhost.queues, "the import is under way"
    world.vhost.declare_queue("somebody's")
    await world.turns(asked)
    answer = asked.result()
    assert not answer["ok"]
    assert f"queues: name '{last}'" in answer["error"]
    assert "the entries before it are taken in" in answer["error"]
    assert len(world.vhost.queues) == MANY


@pytest.mark.asyncio
async def test_an_import_goes_on_when_who_asked_has_gone() -> None:
    world = World()
    queues = [{"name": f"q{number}", "vhost": "/", "durable": True} for number in range(MANY)]
    asked = world.ask("definitions.import", definitions={"queues": queues})
    await asyncio.sleep(0)
    asked.cancel()
    while world.registry.turns.busy or not asked.done():
        await asyncio.sleep(0)
        world.registry.turns.next_turn()
    assert len(world.vhost.queues) == MANY


@pytest.mark.asyncio
async def test_a_policy_reaches_all_queues_however_many_turns_that_takes() -> None:
    world = World()
    for number in range(MANY):
        world.vhost.declare_queue(f"q{number}")
    rule = {"name": "p", "vhost": "/", "pattern": "", "definition": {"max-length": 1}}
    assert (await world.ask("policies.set", **rule))["ok"]
    # It is cleared before it is everywhere.
    assert world.registry.turns.busy
    world.registry.turns.next_turn()
    assert (await world.ask("policies.clear", name="p", vhost="/"))["ok"]
    rule["definition"] = {"max-length": 2}
    assert (await world.ask("policies.set", **rule))["ok"]
    world.vhost.declare_queue("late")
    while world.registry.turns.busy:
        world.registry.turns.next_turn()
    for queue in world.vhost.queues.values():
        for _ in range(4):
            queue.publish(message())
    assert {queue.ready_count() for queue in world.vhost.queues.values()} == {2}


@pytest.mark.asyncio
async def test_a_command_that_is_refused_says_why() -> None:
    world = World()
    assert await world.ask("queues.list", vhost="none") == {
        "ok": False,
        "error": "no vhost 'none': known are '/'",
    }


class Hands(Executor):
    """Does what it is asked to when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.asked.append((future, lambda: call(*arguments, **options)))
        return future

    async def work(self) -> None:
        """Do the first of them."""
        future, call = self.asked.pop(0)
        future.set_result(call())
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_a_password_is_hashed_in_a_thread_and_nobody_waits_for_that() -> None:
    world = World()
    hands = world.users.thread = Hands()
    asked = world.ask("users.add", name="ann", password="secret")
    changed = world.ask("users.add", name="ann", password="another")
    assert (await world.ask("queues.list"))["ok"]
    assert not world.registry.turns.busy, "nothing is tried again and again meanwhile"
    assert world.users.get("ann") is None
    await hands.work()
    assert asked.result()["ok"]
    assert world.users.authenticate("ann", "secret", "127.0.0.1") is not None
    await hands.work()
    assert "there is a user 'ann' already" in changed.result()["error"]


@pytest.mark.asyncio
async def test_a_user_who_goes_while_a_password_is_hashed_does_not_come_back() -> None:
    world = World()
    world.users.add("ann", "secret")
    world.users.add("bob", "secret")
    hands = world.users.thread = Hands()
    asked = world.ask("users.password", name="ann", password="new")
    await asyncio.sleep(0)
    world.users.remove("ann")
    await hands.work()
    assert "no user 'ann'" in asked.result()["error"]
    assert world.users.get("ann") is None


@pytest.mark.asyncio
async def test_an_import_waits_for_the_passwords_that_it_brings() -> None:
    world = World()
    hands = world.users.thread = Hands()
    users = [{"name": name, "password": name} for name in ("ann", "bob")]
    asked = world.ask("definitions.import", definitions={"users": users, "queues": []})
    for _ in users:
        await asyncio.sleep(0)
        assert not asked.done()
        await hands.work()
    assert asked.result()["answer"]["counts"]["users"] == 2
    assert world.users.authenticate("bob", "bob", "127.0.0.1") is not None
