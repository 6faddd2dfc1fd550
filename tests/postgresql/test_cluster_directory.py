"""What each process of a cluster knows of it, and the changes that wait until all of them know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest

from harebell.base.errors import StoreError
from harebell.cluster import cluster_directory
from harebell.cluster.cluster_directory import ClusterDirectory, View
from harebell.cluster.postgresql.database import Database
from harebell.cluster.postgresql.ownership import claim, read_store
from harebell.cluster.postgresql.shared_tables import ClusterTables
from harebell.cluster.postgresql.tables import Tables
from harebell.cluster.shared import CLUSTER_SCHEME
from harebell.cluster.stores import schema_of
from tests.patience import SECONDS, reached
from tests.postgresql.servers import PostgresServer

BASE = "harebell"
_LEASE_MS = 30_000
"""So long they wait for each other."""


class Owner:
    """An owner of a store, without a broker.

    Args:
        url: of the database.
        store: its number.
        serves: whether it has an address.
        stores: how many there are.
    """

    def __init__(self, url: str, store: int, *, serves: bool = True, stores: int = 2) -> None:
        database = Database(url, schema_of(BASE, store), _LEASE_MS, f"broker-{store}", "fsync")
        tables = Tables(database.schema)
        with database.connect() as link:
            tables.make(link)
            self.epoch = claim(link, tables, read_store(link, tables), database)
            if serves:
                address = f'{{"{CLUSTER_SCHEME}": "127.0.0.1:{store}"}}'
                link.execute(tables.statement("UPDATE {store} SET addresses = %s"), (address,))
        self.directory = ClusterDirectory(
            ClusterTables(database, BASE, stores), store, lambda _level, _line: None
        )

    async def start(self) -> None:
        """Begin to follow the cluster."""
        await self.directory.start(self.epoch or 0)


@asynccontextmanager
async def _owners(
    url: str, **settings: bool
) -> AsyncIterator[tuple[ClusterDirectory, ClusterDirectory]]:
    made = [Owner(url, store, **settings) for store in (1, 2)]
    async with AsyncExitStack() as stack:
        for each in made:
            await each.start()
            stack.callback(each.directory.close)
        yield made[0].directory, made[1].directory


@pytest.fixture
def url(postgresql: PostgresServer, database: str) -> str:
    """The URL of an empty database."""
    return postgresql.url(database)


def _play(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 2 * SECONDS))  # type: ignore[arg-type]


def test_a_new_vhost_is_known_everywhere_when_its_place_is(url: str) -> None:
    async def play() -> None:
        async with _owners(url) as (one, two):
            for number in range(10):
                store = await one.place(f"v{number}")
                assert two.store_of(f"v{number}") == one.store_of(f"v{number}") == store
            assert one.is_elsewhere("v0") != two.is_elsewhere("v0")
            assert not one.is_elsewhere("nowhere")

    _play(play)


def test_vhosts_are_spread_evenly_over_idle_stores(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Idle is what they are until they have measured what they do.
    monkeypatch.setattr(cluster_directory, "CLUSTER_LOAD_SECONDS", 86_400.0)

    async def play() -> None:
        async with _owners(url) as (one, _):
            places = [await one.place(f"v{number}") for number in range(6)]
            assert sorted(places) == [1, 1, 1, 2, 2, 2]

    _play(play)


def test_a_vhost_stays_where_it_is(url: str) -> None:
    async def play() -> None:
        async with _owners(url) as (one, two):
            first = await asyncio.gather(one.place("orders"), two.place("orders"))
            assert first[0] == first[1] == await one.place("orders")

    _play(play)


def test_a_store_without_an_owner_that_serves_gets_no_vhost(url: str) -> None:
    async def play() -> None:
        one, two = Owner(url, 1), Owner(url, 2, serves=False)
        for each in (one, two):
            await each.start()
        try:
            assert {await one.directory.place(f"v{number}") for number in range(4)} == {1}
            assert one.directory.address_of(2) is None
        finally:
            one.directory.close()
            two.directory.close()

    _play(play)


def test_an_owner_says_which_vhosts_it_has(url: str) -> None:
    async def play() -> None:
        async with _owners(url) as (one, two):
            await two.register({"a", "b"})
            await one.register({"c"})
            await two.register({"b", "d"})
            assert one.view.vhosts == {"b": 2, "c": 1, "d": 2}
            await one.forget("b")
            assert two.store_of("b") is None

    _play(play)


def test_a_change_waits_until_the_other_owner_has_taken_it_over(url: str) -> None:
    async def play() -> None:
        async with _owners(url) as (one, two):
            taken: list[str] = []

            async def slowly(view: View) -> None:
                await asyncio.sleep(0.2)
                taken.append(view.users)

            two.changed = slowly
            await one.write_users("all of them")
            assert taken == ["all of them"]

    _play(play)


def test_a_row_that_cannot_be_read_does_not_end_the_reading(url: str) -> None:
    async def play() -> None:
        async with _owners(url) as (one, two):
            with psycopg.connect(url, autocommit=True) as link:
                link.execute(f"UPDATE {BASE}.store SET addresses = 'no JSON'")
                await asyncio.sleep(1.0)
                link.execute(f"UPDATE {BASE}.store SET addresses = '{{}}'")
            await one.place("later", 1)
            await reached(lambda: two.store_of("later") is not None)

    _play(play)


def test_a_view_that_the_broker_refuses_is_taken_over_later(url: str) -> None:
    async def play() -> None:
        async with _owners(url) as (one, two):
            tried: list[str] = []

            async def changed(view: View) -> None:
                tried.append(view.users)
                if len(tried) < 3:
                    raise StoreError("the disk is full")

            two.changed = changed
            await one.write_users("new")
            # It is known everywhere only when it was taken over.
            assert tried == ["new"] * 3

    _play(play)


def test_views_are_taken_over_one_after_the_other(url: str) -> None:
    async def play() -> None:
        async with _owners(url) as (one, two):
            taken: list[str] = []
            begun, goes_on = asyncio.Event(), asyncio.Event()

            async def changed(view: View) -> None:
                if view.users == "old":
                    begun.set()
                    await goes_on.wait()
                taken.append(view.users)

            two.changed = changed
            async with asyncio.TaskGroup() as writing:
                writing.create_task(one.write_users("old"))
                await begun.wait()
                writing.create_task(one.write_users("new"))
                await reached(lambda: two.view.users == "new")
                goes_on.set()
            assert taken == ["old", "new"]

    _play(play)


def test_users_who_were_removed_again_do_not_stay_when_the_view_is_old(url: str) -> None:
    async def play() -> None:
        async with _owners(url) as (one, two):
            await one.write_users("without")
            await one.write_users("with")
            one.view = one.view._replace(users="without")
            await one.write_users("without")
            await reached(lambda: two.view.users == "without")

    _play(play)


def test_an_owner_that_was_deposed_does_not_change_the_users(url: str) -> None:
    async def play() -> None:
        async with _owners(url) as (one, _):
            # It does not serve yet, so nobody waits for it.
            Owner(url, 1, serves=False)
            with pytest.raises(StoreError, match="store 1 has another owner now"):
                await one.write_users("of a former owner")
            assert one.view.users == ""

    _play(play)


def test_a_start_waits_for_a_slow_first_answer(url: str) -> None:
    async def play() -> None:
        async with _owners(url):
            pass
        database = Database(url, BASE, 500, "broker", "fsync")
        directory = ClusterDirectory(
            ClusterTables(database, BASE, 2), 1, lambda _level, _line: None
        )
        with psycopg.connect(url) as link:
            link.execute(f"LOCK TABLE {BASE}.vhost IN ACCESS EXCLUSIVE MODE")
            starting = asyncio.create_task(directory.start())
            # Longer than the lease.
            await asyncio.sleep(1.0)
        await starting
        directory.close()

    _play(play)


def test_a_cluster_that_cannot_be_read_is_said_so(url: str) -> None:
    async def play() -> None:
        database = Database(url, BASE, 500, "broker", "fsync")
        directory = ClusterDirectory(
            ClusterTables(database, BASE, 1), 1, lambda _level, _line: None
        )
        # Nobody has made the schema.
        with pytest.raises(StoreError, match="the tables of the cluster cannot be read"):
            await directory.start()

    _play(play)
