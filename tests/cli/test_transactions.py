"""Prepared transactions of a running broker: listed, ended by an operator, and kept by the disk."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harebell.base.gauge import Gauge
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.slices import at_once
from harebell.client.blocking import connect
from harebell.config import Config
from harebell.front.convert import EDITOR, headers_of
from harebell.model.broker import Broker
from harebell.model.transaction import ACCEPT
from harebell.model.xa.association import Association
from harebell.model.xa.branch import SettledDelivery
from harebell.model.xa.xid import FORMAT_0_8, Xid
from harebell.server.disk.storage import Storage
from tests.cli.conftest import done, error_of, listed, run
from tests.patience import eventually
from tests.running import RunningBroker, running_broker
from tests.unit.model.xa.xa_world import GUEST

ONE, TWO = Xid(1, b"transfer", b"one"), Xid(1, b"transfer", b"two")
OLD = Xid(FORMAT_0_8, b"old", b"")


def _message(body: bytes) -> Message:
    return Message("", "q", Properties(b"\x10\x00\x02", PERSISTENT), body)


class Made:
    """A data directory, while a process of the test's own has it."""

    def __init__(self, directory: Path) -> None:
        gauge = Gauge()
        self._storage = Storage(Config(data_dir=directory), gauge, lambda level, text: None)
        self._storage.begin()
        store = self._storage.store
        self.broker = Broker(store, gauge, headers_of, EDITOR, self._storage.wall)
        assert self.broker.restore() == []

    def work(self, xid: Xid, old: bytes, new: bytes) -> None:
        """A branch that takes one message from a queue, and puts one there, and is ended."""
        queue = self.broker.vhosts["/"].declare_queue("q", durable=True)
        queue.publish(_message(old))
        session = Association(self.broker.branches, "/", GUEST)
        session.select()
        session.start(xid)
        got = queue.get()
        assert got is not None
        assert session.branch is not None
        session.branch.settle([SettledDelivery(queue, got[1])], ACCEPT)
        session.branch.publish(_message(new), (queue,), 0)
        session.end(xid)

    def close(self) -> None:
        store = self._storage.store
        store.close()
        while (batch := store.commit.gather()) is not None:
            batch.perform()
            assert batch.failed is None, batch.failed
            store.commit.finish(batch)
        self._storage.end()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A directory with two prepared branches."""
    directory = tmp_path / "data"
    directory.mkdir()
    made = Made(directory)
    for xid, number in ((ONE, b"1"), (TWO, b"2")):
        made.work(xid, b"old " + number, b"new " + number)
        at_once(made.broker.branches.prepare("/", xid, GUEST))
    made.close()
    return directory


def _ready(broker: RunningBroker) -> list[bytes]:
    """What is ready; it stays in the queue."""
    with connect(broker.address()) as connection:
        channel = connection.channel()
        found = []
        while (got := channel.get("q")) is not None:
            found.append(got.body)
        return found


def _states(broker: RunningBroker) -> dict[str, str]:
    return {row["xid"]: row["state"] for row in listed(broker, "transactions")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_operator_ends_what_is_prepared(data_dir: Path, number: signal.Signals) -> None:
    where = ("--data-dir", str(data_dir))
    with running_broker(*where) as broker:
        # Another thread writes the log.
        assert eventually(lambda: "2 prepared transactions" in broker.log)
        assert _states(broker) == {str(ONE): "prepared", str(TWO): "prepared"}
        assert _ready(broker) == []
        text = done(broker, "transactions", "commit", str(ONE))
        assert text == f"transaction {ONE} in vhost '/' was committed"
        assert "was rolled back" in done(broker, "transactions", "rollback", str(TWO))
        assert sorted(_ready(broker)) == [b"new 1", b"old 2"]
        broker.stop(number)
    decided = {str(ONE): "committed heuristically", str(TWO): "rolled back heuristically"}
    with running_broker(*where) as broker:
        assert _states(broker) == decided
        assert sorted(_ready(broker)) == [b"new 1", b"old 2"]
        result = run(broker, "transactions", "commit", str(TWO))
        assert "decision to commit is not possible" in error_of(result)
        for xid in (ONE, TWO):
            assert "was forgotten" in done(broker, "transactions", "forget", str(xid))
        broker.stop(number)
    with running_broker(*where) as broker:
        assert _states(broker) == {}
        assert sorted(_ready(broker)) == [b"new 1", b"old 2"]


def test_everything_about_a_branch_can_be_listed(data_dir: Path) -> None:
    with running_broker("--data-dir", str(data_dir)) as broker:
        first, _ = listed(broker, "transactions")
        assert first.pop("prepared_at").startswith("20")
        assert first == {
            "vhost": "/",
            "xid": "1:7472616e73666572:6f6e65",
            "state": "prepared",
            "user": "guest",
            "sessions": 0,
            "messages_published": 1,
            "messages_settled": 1,
            "timeout": 60,
        }
        assert done(broker, "transactions", "list", "xid").splitlines()[1:] == [str(ONE), str(TWO)]
        done(broker, "vhosts", "add", "v")
        assert done(broker, "transactions", "list", "--vhost", "v", "--json") == "[]"


def test_mistakes_are_named(data_dir: Path) -> None:
    with running_broker("--data-dir", str(data_dir)) as broker:
        result = run(broker, "transactions", "commit", "1:00")
        assert "'1:00' is no xid" in error_of(result)
        result = run(broker, "transactions", "rollback", "1:00:00")
        assert "no transaction 1:00:00 in vhost '/'" in error_of(result)
        result = run(broker, "transactions", "forget", str(ONE))
        assert "forget is not possible" in error_of(result)
        result = run(broker, "transactions", "commit", str(ONE), "--vhost", "none")
        assert "no vhost 'none'" in error_of(result)


def test_the_log_of_a_prepared_branch_is_no_stray_log_in_the_store(data_dir: Path) -> None:
    with running_broker("--data-dir", str(data_dir)) as broker:
        broker.stop()
        result = run(broker, "store", "check", str(data_dir))
        assert result.returncode == 0, result.stdout
        lines = result.stdout.decode().splitlines()
        assert any("prepared transactions" in line and " 2 " in line for line in lines), lines
        dumped = run(broker, "store", "dump", str(data_dir)).stdout.decode()
        assert '"old 1"' in dumped
        assert "transfer" not in dumped
