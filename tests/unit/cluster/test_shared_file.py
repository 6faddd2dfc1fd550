"""What the stores of a data directory share, and the layout of that directory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from harebell.base.errors import StoreError
from harebell.base.osfs import OsFiles
from harebell.cluster.cluster_directory import ClusterDirectory
from harebell.cluster.limits import WORKERS_USERS_LOOK_SECONDS
from harebell.cluster.shared import CLUSTER_SCHEME
from harebell.cluster.workers.layout import Layout, begin_as_one, stores_of
from harebell.cluster.workers.shared_file import NAME, SharedFile
from harebell.cluster.workers.worker import Worker
from harebell.config import Config
from harebell.server.disk.storage import decoded_table
from harebell.store.definitions import open_definitions
from harebell.wire.v09.fields import encode_table
from tests.patience import SECONDS, reached


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Path]:
    """A data directory of two stores, held by a supervisor."""
    held = Layout(Config(data_dir=tmp_path, storage_stores=2))
    yield tmp_path
    held.close()


@asynccontextmanager
async def _owners(root: Path) -> AsyncIterator[list[ClusterDirectory]]:
    """The directories of two owners that serve."""
    async with AsyncExitStack() as stack:
        found = []
        for number in (1, 2):
            shared = SharedFile(root, 2, number)
            with shared.connect() as link:
                epoch = shared.claim(link, number, "broker")
                shared.publish(link, number, epoch, {CLUSTER_SCHEME: f"/{number}"})
            directory = ClusterDirectory(shared, number, lambda _level, _line: None)
            await directory.start(epoch)
            stack.callback(directory.close)
            found.append(directory)
        yield found


def _play(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(2 * SECONDS):
            await work()

    asyncio.run(limited())


def test_a_new_vhost_is_known_everywhere_when_its_place_is(layout: Path) -> None:
    async def play() -> None:
        async with _owners(layout) as (one, two):
            for number in range(10):
                store = await one.place(f"v{number}")
                assert two.store_of(f"v{number}") == one.store_of(f"v{number}") == store
            assert one.secret == two.secret != b""

    _play(play)


def test_a_vhost_stays_where_it_is_until_it_is_forgotten(layout: Path) -> None:
    async def play() -> None:
        async with _owners(layout) as (one, two):
            assert await one.place("a\0b", 2) == await two.place("a\0b", 1) == 2
            await two.forget("a\0b")
            assert one.store_of("a\0b") is None

    _play(play)


def test_an_owner_says_which_vhosts_it_has(layout: Path) -> None:
    async def play() -> None:
        async with _owners(layout) as (one, two):
            await two.register({"a", "b"})
            await one.register({"c"})
            await two.register({"b", "d"})
            assert one.view.vhosts == {"b": 2, "c": 1, "d": 2}

    _play(play)


def test_users_come_from_the_owner_of_store_1_alone(layout: Path) -> None:
    async def play() -> None:
        async with _owners(layout) as (one, two):
            await one.write_users('{"alice":{}}')
            assert two.view.users == '{"alice":{}}'
            shared = SharedFile(layout, 2)
            with shared.connect() as link:
                shared.claim(link, 1, "broker")
            with pytest.raises(StoreError, match="another owner"):
                await one.write_users("{}")

    _play(play)


def test_a_process_that_has_ended_is_not_waited_for(layout: Path) -> None:
    async def play() -> None:
        async with _owners(layout) as (one, two):
            two.close()
            SharedFile(layout, 2).ended(2)
            await reached(lambda: one.address_of(2) is None)
            assert await one.place("a") == 1

    _play(play)


def test_a_later_process_of_a_store_is_told_apart(layout: Path) -> None:
    async def play() -> None:
        async with _owners(layout) as (one, _):
            before = one.address_of(2)
            shared = SharedFile(layout, 2)
            with shared.connect() as link:
                epoch = shared.claim(link, 2, "broker")
                shared.publish(link, 2, epoch, {CLUSTER_SCHEME: "/2"})
            await reached(lambda: one.address_of(2) not in (None, before))

    _play(play)


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    Layout(Config(data_dir=tmp_path, storage_stores=2)).close()
    (tmp_path / "stores" / NAME).write_bytes(b"damaged" * 1000)
    Layout(Config(data_dir=tmp_path, storage_stores=2)).close()
    with SharedFile(tmp_path, 2).connect() as link:
        assert SharedFile(tmp_path, 2).vhosts(link) == {}


def _has_vhosts(directory: Path, *names: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    files = OsFiles(str(directory))
    definitions = open_definitions(str(directory), files, encode_table, decoded_table)
    for name in names:
        definitions.put("vhost", (name,), {})
    definitions.write(definitions.take())
    definitions.close()


@pytest.mark.parametrize("damaged", [True, False], ids=["damaged", "old"])
def test_a_start_knows_the_vhosts_of_stores_that_are_not_ready(
    tmp_path: Path, damaged: bool
) -> None:
    Layout(Config(data_dir=tmp_path, storage_stores=2)).close()
    shared = SharedFile(tmp_path, 2)
    with shared.connect() as link:
        shared.place(link, "a", 1)
        shared.place(link, "gone", 2)
    _has_vhosts(tmp_path, "/")
    _has_vhosts(tmp_path / "stores" / "2", "a", "b")
    if damaged:
        (tmp_path / "stores" / NAME).write_bytes(b"damaged" * 1000)
    Layout(Config(data_dir=tmp_path, storage_stores=2)).close()
    with shared.connect() as link:
        assert shared.vhosts(link) == {"/": 1, "a": 2, "b": 2}
        # A command at store 1 that comes before store 2 is ready.
        assert shared.place(link, "a", 1) == 2


def test_a_start_forgets_the_users_until_store_1_has_written_them(layout: Path) -> None:
    async def play() -> None:
        async with _owners(layout) as (one, _):
            await one.write_users('{"alice":{}}')

    _play(play)
    shared = SharedFile(layout, 2)
    shared.begin({})
    with shared.connect() as link:
        assert shared.users(link) == ""


def test_a_store_waits_for_the_users_before_it_is_claimed(layout: Path) -> None:
    settings = {"data_dir": layout / "stores" / "2", "storage_stores": 2}
    two = Worker(SimpleNamespace(**settings), 2, "broker")  # type: ignore[arg-type]
    shared = SharedFile(layout, 2)

    async def play() -> None:
        claiming = asyncio.create_task(asyncio.to_thread(two.claim))
        with shared.connect() as link:
            epoch = shared.claim(link, 1, "broker")
            # Store 1 is owned, and has not written yet.
            await asyncio.sleep(5 * WORKERS_USERS_LOOK_SECONDS)
            assert 2 not in shared.owners(link)
            assert shared.write_users(link, '{"alice":{}}', epoch)
        assert await claiming == 1

    _play(play)


def test_each_run_has_another_secret(tmp_path: Path) -> None:
    seen = set()
    for _ in range(2):
        Layout(Config(data_dir=tmp_path, storage_stores=2)).close()
        shared = SharedFile(tmp_path, 2)
        with shared.connect() as link:
            seen.add(shared.secret(link))
    assert len(seen) == 2


def test_one_supervisor_holds_a_directory(layout: Path) -> None:
    with pytest.raises(StoreError, match="another broker runs"):
        Layout(Config(data_dir=layout, storage_stores=2))


@contextmanager
def _refused(*words: str) -> Iterator[None]:
    with pytest.raises(StoreError) as refusal:
        yield
    for each in words:
        assert each in str(refusal.value)


def test_a_directory_of_one_store_is_divided_first(tmp_path: Path) -> None:
    (tmp_path / "definitions.sqlite").touch()
    with _refused("has one store", "harebell store split"):
        Layout(Config(data_dir=tmp_path, storage_stores=2))
    assert stores_of(tmp_path) == 1


def test_a_directory_of_several_stores_is_joined_first(layout: Path) -> None:
    (layout / "definitions.sqlite").touch()
    with _refused("has 2 stores", "workers = 2", "harebell store join"):
        begin_as_one(layout)


def test_another_number_of_workers_is_refused(tmp_path: Path) -> None:
    Layout(Config(data_dir=tmp_path, storage_stores=2)).close()
    second = tmp_path / "stores" / "2"
    second.mkdir()
    (second / "definitions.sqlite").touch()
    with _refused("workers is 3", "has 2 stores"):
        Layout(Config(data_dir=tmp_path, storage_stores=3))
    # The lock was given back.
    Layout(Config(data_dir=tmp_path, storage_stores=2)).close()


def test_a_directory_whose_first_start_has_failed_is_a_new_one(tmp_path: Path) -> None:
    Layout(Config(data_dir=tmp_path, storage_stores=2)).close()
    Layout(Config(data_dir=tmp_path, storage_stores=3)).close()
    assert stores_of(tmp_path) == 3
    begin_as_one(tmp_path)
    assert stores_of(tmp_path) == 1


def test_a_number_that_cannot_be_read_is_no_number(tmp_path: Path) -> None:
    Layout(Config(data_dir=tmp_path, storage_stores=2)).close()
    (tmp_path / "stores" / "number").write_text("two")
    with _refused("has no number of stores"):
        stores_of(tmp_path)


def test_a_path_that_is_too_long_for_sockets_is_refused(tmp_path: Path) -> None:
    with _refused("choose a shorter directory"):
        Layout(Config(data_dir=tmp_path / ("x" * 100), storage_stores=2))
