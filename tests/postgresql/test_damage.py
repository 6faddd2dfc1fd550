"""Damage to the log in PostgreSQL loses what was damaged, is named, and stops nothing else.

Each kind of damage is done to the row of one commit, while the broker is stopped. Then the owner
starts again, a standby follows it and is promoted, and both have everything else.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from struct import pack

import psycopg
import pytest

from harebell.cli.verb import DAMAGED
from harebell.client import blocking
from harebell.cluster.postgresql.standby import EVIDENCE
from tests.patience import eventually
from tests.postgresql.brokers import StoreBroker, owner_of
from tests.postgresql.servers import PostgresServer
from tests.running import command, environment

LOG = "harebell.log_0000000001"
COUNT = 12
BAD = 5
"""The message whose commit is damaged; with 1 it is the first one of its queue."""
_ROW_BYTES = 8
_KIND_AND_OFFSET_BYTES = 9


def body(number: int) -> bytes:
    return b"body-%04d " % number * 8


def publish(broker: StoreBroker, first: int, end: int) -> None:
    """Publish, each message with a commit of its own, to two queues by turns."""
    with blocking.connect(url_of(broker)) as connection:
        channel = connection.channel()
        for name in ("even", "odd"):
            channel.declare_queue(name, durable=True)
        for number in range(first, end):
            name = ("even", "odd")[number % 2]
            channel.publish(body(number), routing_key=name, delivery_mode=2)


def url_of(broker: StoreBroker) -> str:
    return f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F"


def browse(broker: StoreBroker) -> list[bytes]:
    """The messages of both queues, which stay there."""
    found = []
    with blocking.connect(url_of(broker)) as connection:
        for name in ("even", "odd"):
            channel = connection.channel()
            while (message := channel.get(name)) is not None:
                found.append(message.body)
            channel.close()
    return sorted(found)


Rows = psycopg.Connection[tuple[object, ...]]
Damage = Callable[[Rows, int, bytes], None]


def put(at: Callable[[bytes], int], value: bytes) -> Damage:
    """Write other bytes at a place of a row."""

    def damage(link: Rows, number: int, content: bytes) -> None:
        place = at(content)
        changed = content[:place] + value + content[place + len(value) :]
        assert changed != content
        link.execute(f"UPDATE {LOG} SET content = %b WHERE number = %s".encode(), (changed, number))

    return damage


def missing(link: Rows, number: int, content: bytes) -> None:
    link.execute(f"DELETE FROM {LOG} WHERE number = %s".encode(), (number,))


def doubled(link: Rows, number: int, content: bytes) -> None:
    link.execute(f"ALTER TABLE {LOG} DROP CONSTRAINT log_0000000001_pkey".encode())
    link.execute(
        f"INSERT INTO {LOG} SELECT number, epoch, content FROM {LOG} WHERE number = %s".encode(),
        (number,),
    )


def emptied(link: Rows, number: int, content: bytes) -> None:
    link.execute(f"UPDATE {LOG} SET content = '' WHERE number = %s".encode(), (number,))


def _check(url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), "store", "check", url],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        check=False,
    )


def test_a_store_that_is_in_use_is_checked_and_left_alone(
    postgresql: PostgresServer, database: str
) -> None:
    url = postgresql.url(database)
    with StoreBroker("a", url) as one:
        one.wait_until_it_serves()
        publish(one, 0, COUNT)
        for _ in range(2):
            checked = _check(url)
            assert checked.returncode == 0, checked.stdout + checked.stderr
            assert "no damage" in checked.stdout
            assert f"{COUNT} messages" in checked.stdout
            assert "even" in checked.stdout
        publish(one, COUNT, COUNT + 2)
        assert browse(one) == sorted(body(n) for n in range(COUNT + 2))
        assert one.stop() == 0
    assert f"{COUNT + 2} messages" in _check(url).stdout
    elsewhere = subprocess.run(
        [command(), "store", "check", url, "--schema", "other"],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        check=False,
    )
    assert elsewhere.returncode == 1
    assert "there is no store in the schema 'other'" in elsewhere.stderr


DAMAGE: dict[str, tuple[Damage, bool, str]] = {
    "version": (put(lambda row: 0, b"\x07"), False, "only its head"),
    "version of a compressed row": (put(lambda row: 0, b"\x02"), False, "only its head"),
    "checksum": (put(lambda row: 4, b"\xff\xff\xff\xff"), False, "is damaged"),
    "body": (put(lambda row: row.index(body(BAD)) + 20, b"\xff"), True, "is damaged"),
    "length of a name": (
        put(lambda row: _ROW_BYTES + _KIND_AND_OFFSET_BYTES, b"\xff\xff"),
        True,
        "is damaged",
    ),
    "length of the bytes": (
        put(lambda row: _ROW_BYTES + _KIND_AND_OFFSET_BYTES + 2, pack("<Q", 2**40)),
        True,
        "is damaged",
    ),
    "offset": (put(lambda row: _ROW_BYTES + 1, pack("<Q", 7)), True, "is damaged"),
    "emptied": (emptied, True, "is damaged"),
    "missing": (missing, True, "is missing"),
    "doubled": (doubled, False, "is there twice"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_only_what_is_damaged_is_lost_and_it_is_named(
    kind: str, postgresql: PostgresServer, database: str
) -> None:
    damage, loses, said = DAMAGE[kind]
    url = postgresql.url(database)
    with StoreBroker("a", url) as one, StoreBroker("b", url) as other:
        other.stop()
        one.wait_until_it_serves()
        publish(one, 0, COUNT)
        assert one.stop() == 0
        with psycopg.connect(url) as link:
            rows = link.execute(f"SELECT number, content FROM {LOG} ORDER BY number".encode())
            [(number, content)] = [
                (number, bytes(content))
                for number, content in rows.fetchall()
                if body(BAD) in bytes(content)
            ]
            damage(link, number, content)
        there = sorted(body(n) for n in range(COUNT) if n != BAD or not loses)
        checked = _check(url)
        assert checked.returncode == DAMAGED, checked.stderr
        assert f"damaged: row {number} of the log is" in checked.stdout
        assert said in checked.stdout
        assert f"{len(there)} messages" in checked.stdout
        one.start()
        one.wait_until_it_serves()
        assert eventually(lambda: f"row {number} of the log is" in one.log)
        assert eventually(lambda: said in one.log)
        if kind not in ("missing", "emptied"):
            evidence = list((one.data_dir / EVIDENCE).iterdir())
            assert [each.name for each in evidence] == [f"harebell-row-{number}"]
        assert browse(one) == there
        assert one.log.count(f"row {number} of the log is") == 1
        assert one.stop() == 0
        one.start()
        one.wait_until_it_serves()
        assert eventually(lambda: "1 row is still damaged, reported since 20" in one.log)
        # It has been said.
        assert one.log.count(f"row {number} of the log is") == 1
        publish(one, COUNT, COUNT + 2)
        there = sorted([*there, body(COUNT), body(COUNT + 1)])
        other.start()
        # It may have stood by in its life before.
        assert eventually(lambda: said in other.log and other.log.endswith("owns the store\n"))
        one.kill()
        assert owner_of([other]) is other
        assert browse(other) == there
        assert "Traceback" not in one.log + other.log
        assert other.stop() == 0
