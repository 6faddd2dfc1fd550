"""A directory is described as a broker would find it, and only a repair changes it."""

from __future__ import annotations

import errno

import pytest

from harebell.base.errors import DiskError
from harebell.store.check import Holding, Survey
from tests.unit.store.stores import DIRECTORY, IDENTITY, Bench, message

OTHER = "e" * 32


def _bench(count: int = 4) -> Bench:
    """A log with so many messages, of which one was settled and another was handed out."""
    bench = Bench()
    bench.definitions.put("queue", ("/", "jobs"), {"identity": IDENTITY, "kind": "classic"})
    log = bench.log()
    for number in range(count):
        log.append(message(b"body %d" % number))
    log.settle(0)
    bench.commit()
    bench.store.close()
    bench.commit()
    return bench


def _survey(bench: Bench, **options: bool) -> Survey:
    return Survey(bench.disk, bench.definitions, **options)


def _only(survey: Survey) -> Holding:
    (found,) = survey.holdings()
    return found


def _path(bench: Bench) -> str:
    (name,) = bench.files()
    return f"{DIRECTORY}/{name}"


def _damage(bench: Bench, body: bytes) -> None:
    file = bench.disk.open(_path(bench))
    octets = file.read_at(file.size(), 0)
    file.write_at(b"#", octets.index(body))
    file.sync()
    file.close()


def test_a_queue_is_named_and_its_messages_are_counted() -> None:
    survey = _survey(_bench())
    found = _only(survey)
    assert (found.vhost, found.name, found.kind) == ("/", "jobs", "classic")
    assert (found.messages, found.segments, found.logs) == (3, 1, [IDENTITY])
    assert found.byte_count > 0
    assert found.damage == found.harmless == found.quarantined == []
    assert survey.quarantine() == []
    survey.close()


def test_messages_come_in_order_and_without_the_settled_ones() -> None:
    survey = _survey(_bench())
    found = list(survey.messages(_only(survey)))
    assert [(position, bytes(each.body)) for position, each, _ in found] == [
        (number, b"body %d" % number) for number in (1, 2, 3)
    ]


def test_messages_delivered_before_are_marked_and_counted() -> None:
    bench = Bench()
    bench.definitions.put("queue", ("/", "jobs"), {"identity": IDENTITY, "kind": "classic"})
    log = bench.log()
    for number in range(3):
        log.append(message(b"body %d" % number))
    log.see(2)
    bench.commit()
    bench.store.close()
    bench.commit()
    survey = _survey(bench, was_clean=True)
    holding = _only(survey)
    assert holding.unacknowledged == 2
    assert [seen for _, _, seen in survey.messages(holding)] == [True, True, False]


@pytest.mark.parametrize("mend", [False, True])
def test_damage_is_described_and_only_mended_on_demand(mend: bool) -> None:
    bench = _bench()
    _damage(bench, b"body 2")
    survey = _survey(bench, mend=mend)
    found = _only(survey)
    assert found.messages == 2
    assert len(found.damage) == 1
    assert _path(bench) in found.damage[0]
    (copy,) = set(found.quarantined)
    assert copy.startswith("quarantine/")
    assert bench.disk.names("quarantine") == ([copy.rpartition("/")[2]] if mend else [])
    assert [bytes(each.body) for _, each, _ in survey.messages(found)] == [b"body 1", b"body 3"]


@pytest.mark.parametrize(("clean", "kind"), [(False, "harmless"), (True, "damage")])
def test_a_torn_end_is_harmless_unless_the_directory_was_closed(clean: bool, kind: str) -> None:
    bench = _bench()
    file = bench.disk.open(_path(bench))
    size = file.size()
    file.write_at(b"\x77" * 40, size)
    file.close()
    found = _only(_survey(bench, was_clean=clean))
    assert len(getattr(found, kind)) == 1
    assert found.messages == 3
    file = bench.disk.open(_path(bench))
    assert file.size() == size + 40
    file.close()


def test_queues_without_logs_and_logs_without_queues_are_both_shown() -> None:
    bench = _bench()
    bench.definitions.put("queue", ("v", "new"), {"identity": OTHER, "kind": "quorum"})
    bench.definitions.drop("queue", ("/", "jobs"))
    bench.commit()
    new, lost = _survey(bench).holdings()
    assert (new.vhost, new.name, new.kind, new.messages) == ("v", "new", "quorum", 0)
    assert (lost.identity, lost.kind, lost.messages) == (IDENTITY, "", 3)


def test_the_logs_of_a_queue_are_added_up_in_their_order() -> None:
    bench = Bench()
    bench.definitions.put("queue", ("/", "jobs"), {"identity": IDENTITY, "kind": "priority"})
    for level in (10, 2):
        bench.store.open_log(f"{IDENTITY}-{level}", durable=True).append(message())
    bench.commit()
    found = _only(_survey(bench))
    assert found.logs == [f"{IDENTITY}-2", f"{IDENTITY}-10"]
    assert (found.messages, found.segments) == (2, 2)


def test_queues_can_be_chosen_by_name_and_vhost() -> None:
    bench = _bench()
    bench.definitions.put("queue", ("v", "jobs"), {"identity": OTHER, "kind": "classic"})
    bench.commit()
    survey = _survey(bench)
    assert [each.vhost for each in survey.holdings(queue="jobs")] == ["/", "v"]
    assert [each.vhost for each in survey.holdings(queue="jobs", vhost="v")] == ["v"]
    assert list(survey.holdings(queue="other")) == []


def test_a_directory_that_is_no_log_is_damage() -> None:
    bench = Bench()
    bench.disk.make_directory("queues/readme")
    found = _only(_survey(bench))
    assert found.damage == ["queues/readme is no directory of a log"]


def test_without_definitions_the_logs_have_no_names() -> None:
    bench = _bench()
    survey = Survey(bench.disk, None)
    found = _only(survey)
    assert (found.kind, found.messages) == ("", 3)


def _unreadable(_operation: int, kind: str, path: str) -> None:
    if kind == "read" and path.endswith(".seg"):
        raise OSError(errno.EIO, "Input/output error at byte 0", path)


def test_a_log_that_the_disk_cannot_read_is_named_and_the_others_are_looked_at() -> None:
    bench = _bench()
    bench.definitions.put("queue", ("/", "new"), {"identity": OTHER, "kind": "classic"})
    bench.commit()
    bench.disk.hook = _unreadable
    jobs, new = _survey(bench).holdings()
    (text,) = jobs.unread
    assert text.startswith(f"the disk cannot read {_path(bench)} (Input/output error at byte 0): ")
    assert jobs.damage == jobs.harmless == jobs.quarantined == []
    assert (new.name, new.unread) == ("new", [])


def test_a_log_that_the_disk_cannot_read_is_not_mended() -> None:
    bench = _bench()
    bench.disk.hook = _unreadable
    with pytest.raises(DiskError, match="the disk cannot read"):
        list(_survey(bench, mend=True).holdings())
    bench.disk.hook = None
    assert bench.disk.names("quarantine") == []
