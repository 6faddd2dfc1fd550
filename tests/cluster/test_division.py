"""One data directory becomes several stores and back, with everything that is in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harebell.base.errors import StoreError
from harebell.base.osfs import OsFiles
from harebell.base.ports import PUBLISHER_LOG
from harebell.client.blocking import connect
from harebell.cluster.workers import division
from harebell.cluster.workers.division import join, split
from harebell.cluster.workers.layout import check, data_dirs, stores_of
from harebell.management.control.client import ask_command
from harebell.store import inventory
from tests.cluster.workers import EVERYTHING, workers
from tests.patience import SECONDS
from tests.robustness.small_disk import small_disk
from tests.running import DidNotStart, RunningBroker, command, environment

VHOSTS = ("/", "a", "b", "c")
BODIES = [b"%d" % number for number in range(50)]


def _amqp(broker: RunningBroker, vhost: str, user: str = "alice:secret") -> str:
    return f"amqp://{user}@127.0.0.1:{broker.port}/{vhost.replace('/', '%2F')}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of one store with four vhosts, closed in good order."""
    home = tmp_path_factory.mktemp("whole") / "data"
    with RunningBroker("--data-dir", str(home)) as broker:

        def ask(asked: str, /, **fields: Any) -> Any:
            return ask_command(home, asked, fields)

        ask("users.add", name="alice", password="secret")
        for name in VHOSTS:
            if name != "/":
                ask("vhosts.add", name=name)
            ask("permissions.set", user="alice", vhost=name, **EVERYTHING)
            short = {"pattern": "^x", "definition": {"max-length": 9}}
            ask("policies.set", vhost=name, name="short", **short)
            with (
                connect(_amqp(broker, name)) as connection,
                connection.channel(confirms=True) as channel,
            ):
                channel.declare_queue("jobs", durable=True)
                channel.declare_queue("levels", durable=True, arguments={"x-max-priority": 3})
                channel.declare_queue("past", durable=True, arguments={"x-queue-type": "stream"})
                channel.declare_exchange("all", "fanout", durable=True)
                for queue in ("jobs", "levels", "past"):
                    channel.bind_queue(queue, "all")
                channel.publisher_declare("sensor")
                for number, body in enumerate(BODIES):
                    headers = {"x-publishing-id": number}
                    channel.publish(
                        body, exchange="all", delivery_mode=2, priority=1, headers=headers
                    )
                # Delivered once, and back: the mark has to move, too.
                assert channel.get("jobs") is not None
        assert broker.stop() == 0
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return _copied(whole, tmp_path / "data")


def _copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.sock")))


def _content(broker: RunningBroker) -> dict[str, Any]:
    """Everything that clients and operators see of the four vhosts; nothing is taken out."""
    found: dict[str, Any] = {}
    document = ask_command(broker.data_dir, "definitions.export", {})
    for section in ("users", "vhosts", "permissions", "policies", "queues", "bindings"):
        found[section] = sorted(map(str, document[section]))
    for vhost in VHOSTS:
        assert sorted(
            (row["name"], row["messages"])
            for row in ask_command(broker.data_dir, "queues.list", {"vhost": vhost})
        ) == [("jobs", 50), ("levels", 50), ("past", 50)]
        with (
            connect(_amqp(broker, vhost)) as connection,
            connection.channel(confirms=True) as channel,
        ):
            found[f"{vhost} next"] = channel.publisher_declare("sensor").next
            # It has been published before, so it is dropped.
            headers = {"x-publishing-id": 7}
            channel.publish(b"again", exchange="all", delivery_mode=2, headers=headers)
            for queue in ("jobs", "levels"):
                taken = [channel.get(queue) for _ in BODIES]
                assert [each and bytes(each.body) for each in taken] == BODIES
                found[f"{vhost} {queue}"] = [each and each.redelivered for each in taken]
    return found


@pytest.fixture(scope="module")
def expected(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is in the directory before anything is divided."""
    copied = _copied(whole, tmp_path_factory.mktemp("expected") / "data")
    with RunningBroker("--data-dir", str(copied)) as broker:
        return _content(broker)


def test_a_directory_becomes_several_stores_and_one_again(
    home: Path, expected: dict[str, Any], whole: Path
) -> None:
    done = split(home, 3, {"b": 3})
    assert done.vhosts["/"] == 1
    assert done.vhosts["b"] == 3
    assert set(done.vhosts.values()) == {1, 2, 3}
    with RunningBroker("--data-dir", str(home), "--workers", "3") as broker:
        rows = ask_command(home, "vhosts.list", {})
        assert {row["name"] for row in rows} == set(VHOSTS)
        assert _content(broker) == expected
        assert broker.stop() == 0
        assert "[error]" not in broker.log
    _copied(whole, home)
    split(home, 2)
    join(home)
    assert not (home / "stores").exists()
    with RunningBroker("--data-dir", str(home)) as broker:
        assert _content(broker) == expected
        assert broker.stop() == 0
        assert "[error]" not in broker.log


def test_what_was_made_with_workers_is_there_after_a_join(tmp_path: Path) -> None:
    home = tmp_path / "data"
    with workers("--data-dir", str(home)) as found:
        with (
            connect(found.amqp("far")) as connection,
            connection.channel(confirms=True) as channel,
        ):
            channel.declare_queue("jobs", durable=True)
            channel.publish(b"kept", routing_key="jobs", delivery_mode=2)
        found.ask("users.add", name="alice", password="secret")
        found.ask("permissions.set", user="alice", vhost="far", **EVERYTHING)
        assert found.broker.stop() == 0
    join(home)
    with (
        RunningBroker("--data-dir", str(home)) as broker,
        connect(_amqp(broker, "far")) as connection,
        connection.channel() as channel,
    ):
        taken = channel.get("jobs", no_ack=True)
        assert taken is not None
        assert bytes(taken.body) == b"kept"


# --- interruptions --------------------------------------------------------------------------------


def _killed_at(monkeypatch: pytest.MonkeyPatch, step: int, work: Callable[[], object]) -> bool:
    """Run something in a process that is killed at the begin of a step; whether it was."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)
    left = [step]

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **named: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return act(*args, **named)

        return run

    try:
        monkeypatch.setattr(os, "rename", counted(os.rename))
        monkeypatch.setattr(division, "sync_path", counted(division.sync_path))
        monkeypatch.setattr(division, "write_number", counted(division.write_number))
        for name in ("begin", "commit", "leave", "end"):
            act = getattr(division._OpenStore, name)
            monkeypatch.setattr(division._OpenStore, name, counted(act))
        work()
        os._exit(0)
    finally:
        # Only an error comes here; this process has no test to go on with.
        os._exit(1)


def _steps(
    monkeypatch: pytest.MonkeyPatch, prepare: Callable[[], object], work: Callable[[], object]
) -> Iterator[int]:
    """Kill something at each of its steps."""
    step = 0
    while True:
        prepare()
        if not _killed_at(monkeypatch, step, work):
            return
        yield step
        step += 1


def _logs(home: Path) -> list[str]:
    there = [path.name for path in home.glob("**/queues/*")]
    # Each store has its own log of publishers.
    return sorted(each for each in there if each != PUBLISHER_LOG)


def _counted(home: Path) -> dict[str, int]:
    """The numbers of segments in the inventories of all stores, but for their own logs."""
    counts: dict[str, int] = {}
    for each in data_dirs(home, stores_of(home)):
        counts |= inventory.read(OsFiles(str(each)))
    counts.pop(PUBLISHER_LOG, None)
    return counts


def test_an_interrupted_division_goes_on(
    monkeypatch: pytest.MonkeyPatch, whole: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    home = tmp_path / "data"
    logs, counts = _logs(whole), _counted(whole)
    assert len(counts) > len(VHOSTS)
    steps = list(
        _played(
            monkeypatch,
            lambda: _copied(whole, home),
            lambda: split(home, 2, {"a": 2}),
            home,
            (logs, counts),
            2,
        )
    )
    assert len(steps) > 10
    # Before the look at it, which marks messages as delivered.
    divided = _copied(home, tmp_path / "divided")
    with RunningBroker("--data-dir", str(home), "--workers", "2") as broker:
        assert _content(broker) == expected
    steps = list(
        _played(
            monkeypatch,
            lambda: _copied(divided, home),
            lambda: join(home),
            home,
            (logs, counts),
            1,
        )
    )
    assert len(steps) > 10
    with RunningBroker("--data-dir", str(home)) as broker:
        assert _content(broker) == expected


def _played(
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[], object],
    work: Callable[[], object],
    home: Path,
    content: tuple[list[str], dict[str, int]],
    after: int,
) -> Iterator[int]:
    """Kill something at each of its steps, and let it go on; no broker starts in between."""
    for step in _steps(monkeypatch, prepare, work):
        began = (home / "stores" / "dividing").exists()
        if began:
            for count in (1, 2):
                with pytest.raises(StoreError, match="did not end"):
                    check(home, count)
        if began or stores_of(home) != after:
            work()
        assert stores_of(home) == after
        assert (_logs(home), _counted(home)) == content
        yield step


@pytest.mark.parametrize("text", ["", "{", "[]", '{"before": 1}', '{"before": 1, "more": 2}'])
def test_a_damaged_plan_is_named_and_nothing_is_changed(home: Path, text: str) -> None:
    split(home, 2)
    logs = _logs(home)
    (home / "stores" / "dividing").write_text(text)
    for work in (lambda: split(home, 2), lambda: join(home)):
        with pytest.raises(StoreError, match="dividing is damaged"):
            work()
    (home / "stores" / "dividing").unlink()
    assert _logs(home) == logs
    join(home)


# --- what cannot be divided -----------------------------------------------------------------------


def test_a_running_broker_keeps_its_directory(home: Path) -> None:
    with RunningBroker("--data-dir", str(home)), pytest.raises(StoreError, match="another broker"):
        split(home, 2)
    several = ("--data-dir", str(home.with_name("several")))
    with workers(*several) as found, pytest.raises(StoreError, match="another broker"):
        join(found.broker.data_dir)


def test_a_directory_that_was_not_closed_is_refused(home: Path) -> None:
    with RunningBroker("--data-dir", str(home)) as broker:
        broker.process.kill()
        broker.process.wait()
    with pytest.raises(StoreError, match="not closed in good order"):
        split(home, 2)
    assert stores_of(home) == 1
    with RunningBroker("--data-dir", str(home)) as broker:
        assert broker.stop() == 0
    assert split(home, 2).vhosts["/"] == 1


@pytest.mark.parametrize(
    ("placed", "reason"),
    [
        ({"none": 1}, "there is no vhost 'none'"),
        ({"a": 3}, "there is no store 3"),
        ({"/": 2}, "stays in store 1"),
    ],
)
def test_wrong_places_are_refused(home: Path, placed: dict[str, int], reason: str) -> None:
    with pytest.raises(StoreError, match=reason):
        split(home, 2, placed)
    assert stores_of(home) == 1


def test_a_divided_directory_is_joined_before_it_is_divided_anew(home: Path) -> None:
    split(home, 2)
    with pytest.raises(StoreError, match="harebell store join"):
        split(home, 3)
    with pytest.raises(StoreError, match="has 2 stores already"):
        split(home, 2)
    join(home)
    with pytest.raises(StoreError, match="has 1 store already"):
        join(home)


def test_a_full_disk_is_named_and_loses_nothing(whole: Path, expected: dict[str, Any]) -> None:
    def harebell(*words: object) -> tuple[int, str]:
        done = subprocess.run(
            [*disk.prefix, command(), "store", *map(str, words)],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stderr

    # Not in the directory of the test: paths of sockets have to be short.
    with (
        tempfile.TemporaryDirectory(prefix="harebell-") as place,
        small_disk(Path(place) / "disk", 64 * 1024 * 1024) as disk,
    ):
        _copied(whole, disk.seen / "data")
        home = disk.data_dir
        for command_line in (("split", home, 2), ("join", home)):
            # What is left at first is not enough to lock it, then to open it, then to write.
            for room in (0, 8_192, 65_536, 131_072):
                disk.fill(room)
                code, said = harebell(*command_line)
                disk.give_back()
                if code == 0:
                    break
                assert "bytes left: make room for" in said
            else:
                assert harebell(*command_line) == (0, "")
        with RunningBroker("--data-dir", str(home), prefix=disk.prefix) as broker:
            found = {**expected}
            with connect(_amqp(broker, "a")) as connection, connection.channel() as channel:
                taken = [channel.get("jobs", no_ack=True) for _ in BODIES]
                assert [each and bytes(each.body) for each in taken] == BODIES
            document = ask_command(disk.seen / "data", "definitions.export", {})
            for section in ("users", "vhosts", "permissions", "policies", "queues", "bindings"):
                assert sorted(map(str, document[section])) == found[section]


def test_one_of_several_stores_is_not_divided_or_served_alone(home: Path) -> None:
    split(home, 2)
    part = home / "stores" / "2"
    there = sorted(part.rglob("*"))
    for work in (lambda: split(part, 2), lambda: join(part)):
        with pytest.raises(StoreError, match=f"give the whole data directory, {home}"):
            work()
    for flags in ((), ("--workers", "2")):
        with pytest.raises(DidNotStart, match="is one of several stores"):
            RunningBroker("--data-dir", str(part), *flags)
    assert sorted(part.rglob("*")) == there


@pytest.mark.parametrize("text", ["", "0", "-3", "70", "two", "2 2", "9" * 30])
def test_a_wrong_number_of_stores_is_no_new_directory(home: Path, text: str) -> None:
    split(home, 2)
    (home / "stores" / "number").write_text(text)
    for flags in ((), ("--workers", "2")):
        with pytest.raises(DidNotStart, match="has no number of stores"):
            RunningBroker("--data-dir", str(home), *flags)
    with pytest.raises(StoreError, match="has no number of stores"):
        join(home)
    (home / "stores" / "number").write_text("2\n")
    join(home)


def test_the_command_line_divides_and_joins(home: Path) -> None:
    def harebell(*words: object) -> str:
        done = subprocess.run(
            [command(), "store", *map(str, words)],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=SECONDS,
            check=False,
        )
        return done.stdout if done.returncode == 0 else f"{done.returncode} {done.stderr}"

    assert "2 to 64" in harebell("split", home, "1")
    assert "--place 'a'" in harebell("split", home, "2", "--place", "a")
    assert "store 2: vhost 'a'\n" in harebell("split", home, "2", "--place", "a=2")
    assert stores_of(home) == 2
    assert "moved and checked" in harebell("join", home)
    assert stores_of(home) == 1
