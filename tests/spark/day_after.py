"""Queries over weeks in which everything goes wrong that goes wrong on the day after a crash.

Two queries, over a classic queue and a stream, write to a table by number, to an exchange of the
broker that they read from, and to one of a broker that stays. In each cycle messages come, the
queries run, and one thing happens:

    broker killed       and started again on its data, or its store in PostgreSQL is taken over
    killed under them   the same while the queries run
    query killed        when a micro-batch was planned, or when the sinks had it
    user rotated        the next run comes as another user; its publishers are handed over
    backup              of the broker while it runs
    restored            to the last backup

For each sink it is known what a restore may take from it and what may come again; all the rest has
to be there once. A cycle whose restore has done something must be one in which a query says so, and
in all others no query says anything.
"""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from harebell.base.errors import HarebellError
from harebell.spark.reading.data_loss_policy import DataLoss
from tests.cli.conftest import done as harebell
from tests.cli.conftest import run_harebell
from tests.postgresql.brokers import StoreBroker, owner_of
from tests.postgresql.servers import USER, PostgresServer
from tests.running import RunningBroker
from tests.spark.cells import Cell, Played, Site

FAULTS = (
    "broker killed",
    "killed under them",
    "query killed",
    "user rotated",
    "backup",
    "restored",
)
_OUTAGE = "the broker at "
"""What is said of one that is away, and back, is no word about messages."""
_TRIES = 6
_MOST = 40
_UNDER_SECONDS = 0.4
_LEASE_MS = 3_000


class Weeks(Protocol):
    """The broker with the lives."""

    @property
    def port(self) -> int:
        """Where clients reach it, whoever serves."""

    @property
    def broker(self) -> Any:
        """Who serves now."""

    def kill(self) -> None:
        """kill -9, and wait until a broker serves."""

    def revive(self) -> None:
        """Start what was killed, in a thread that stays: such a broker ends with its thread."""

    def save(self) -> None:
        """Make a backup."""

    def put_back(self) -> None:
        """Restore the last backup."""


class Directory(Site):
    """A broker over a data directory, with `harebell backup` and `harebell restore`."""

    def revive(self) -> None:
        """Nothing is to be done: it was started again on its data."""

    def save(self) -> None:
        """Make a backup while it runs."""
        harebell(self.broker, "backup", str(self.copy))

    def put_back(self) -> None:
        """Restore the last backup."""
        self.broker.stop()
        self.broker.remove()
        shutil.rmtree(self.home)
        done = run_harebell("restore", str(self.copy), "--data-dir", str(self.home))
        assert done.returncode == 0, done.stderr
        self.start()


class Database:
    """Two brokers over a store in PostgreSQL, whose database is copied and put back.

    Args:
        server: where the database is.
        name: of the database.
    """

    def __init__(self, server: PostgresServer, name: str) -> None:
        self._server = server
        self._name = name
        self._brokers = [
            StoreBroker(each, server.url(name), lease_ms=_LEASE_MS) for each in ("a", "b")
        ]
        self.broker = owner_of(self._brokers)
        self._killed: StoreBroker | None = None

    @property
    def port(self) -> int:
        """Where the owner listens: one that was killed passes nobody on."""
        return self.broker.port

    def kill(self) -> None:
        """Fail over."""
        self.broker.kill()
        self._killed, self.broker = self.broker, owner_of(self._brokers)

    def revive(self) -> None:
        """Let the killed one stand by."""
        if self._killed is not None:
            self._killed.start()
            self._killed.wait_until_it_answers()
            self._killed = None

    def save(self) -> None:
        """Copy the database between two commits."""
        self._copied(self._name, f"{self._name}_copy")

    def put_back(self) -> None:
        """Let the copy take its place: as a fail-over that lost what came since."""
        self._copied(f"{self._name}_copy", self._name)

    def _copied(self, source: str, target: str) -> None:
        for each in self._brokers:
            each.stop()
        self._server.drop_database(target)
        self._server.execute(f"CREATE DATABASE {target} TEMPLATE {source} OWNER {USER}")
        for each in self._brokers:
            each.start()
            each.wait_until_it_answers()
        self.broker = owner_of(self._brokers)

    def remove(self) -> None:
        """End both."""
        for each in self._brokers:
            each.remove()
        self._server.drop_database(f"{self._name}_copy")


@dataclass
class Sink:
    """What is known of the rows in a sink.

    Args:
        rows: that it has.
        saved: those that it had when the backup was made.
        gone: those that a restore has taken, from it or before it had them.
        again: those that may be there twice.
    """

    rows: set[int] = field(default_factory=set)
    saved: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    again: set[int] = field(default_factory=set)


class Query(Played):
    """A query, and what is known of its sinks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.known = {name: Sink() for name in self.sinks if name != "replaces"}
        self.published: set[int] = set()
        self.saved: set[int] = set()
        self.expected = False
        self.sent = 0
        self.writes = self.saved_writes = 0

    def wrote(self, name: str, ids: list[int]) -> None:
        """Know that a sink has rows."""
        if name in self.known:
            self.known[name].rows |= set(ids)
        self.writes += len(ids)

    def backed_up(self) -> None:
        """Know what there was at a backup."""
        self.saved = set(self.published)
        self.saved_writes = self.writes
        for sink in self.known.values():
            sink.saved = set(sink.rows)

    def restored(self) -> None:
        """Know what a restore takes, and what it lets come again."""
        leased = self.cell.kind == "classic"
        late = self.published - self.saved
        for name, sink in self.known.items():
            since = sink.rows - sink.saved
            if name == "exchange":
                sink.gone |= late if leased else late | since
                sink.rows = set(sink.saved)
            else:
                sink.gone |= late - sink.rows
                sink.again |= since - late if leased else set()
        # Also what comes again and was in the table before.
        self.expected = self.writes > self.saved_writes
        self.writes = self.saved_writes
        self.published = set(self.saved)

    def check(self, where: str) -> Counter[str]:
        """Compare every sink with what is known; return counts."""
        counts: Counter[str] = Counter()
        for name, sink in self.known.items():
            times = Counter(self.sinks[name].ids())
            lost = self.every - times.keys() - sink.gone
            doubled = {number for number, count in times.items() if count > 1} - sink.again
            what = f"{where}, {self.cell.kind} to {name}"
            assert not lost, f"{what}: {len(lost)} lost in silence, {sorted(lost)[:5]}"
            assert not doubled, f"{what}: {len(doubled)} doubled in silence, {sorted(doubled)[:5]}"
            counts["taken by restores"] += len(self.every - times.keys())
            counts["said to come again"] += sum(count > 1 for count in times.values())
        return counts

    @property
    def every(self) -> set[int]:
        """Every message that was ever published."""
        return set(range(self.sent))

    def more(self, count: int) -> None:
        """Publish messages."""
        self.published |= self.publish(self.sent, self.sent + count)
        self.sent += count


class DayAfter:
    """A run.

    Args:
        site: the broker with the lives.
        elsewhere: the broker that stays.
        seed: every choice is made from it.
    """

    def __init__(self, site: Weeks, elsewhere: RunningBroker, seed: int) -> None:
        self._site = site
        self._elsewhere = elsewhere
        self._rng = random.Random(seed)
        self._where = f"HAREBELL_SEED={seed}"
        self.faults: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self._deck: list[str] = []
        self._errors: list[str] = []
        self._strike: threading.Thread | None = None
        self._queries = [
            Query(Cell(kind, 0), f"{kind}.in", lambda: site, lambda: elsewhere)
            for kind in ("classic", "stream")
        ]
        for broker in (site.broker, elsewhere):
            for user in ("first", "second"):
                harebell(broker, "users", "add", user, "secret")
                harebell(broker, "permissions", "set", user, ".*", ".*", ".*")
        for query in self._queries:
            query.user = "first"
            query.prepare()
        self._happen("backup")

    def cycle(self) -> None:
        """Let messages come, let something happen, and run the queries."""
        # Each comes once in so many cycles, in another order every time.
        if not self._deck:
            self._deck = self._rng.sample(FAULTS, len(FAULTS))
        fault = self._deck.pop()
        self.faults[fault] += 1
        for query in self._queries:
            query.more(self._rng.randrange(_MOST))
        if self._rng.random() < 0.5:
            self._run(self._rng.randrange(3))
        self._happen(fault)
        for query in self._queries:
            query.more(self._rng.randrange(_MOST))
        with self._killed_under(fault):
            self._run(self._rng.randrange(1, 6))

    def _happen(self, fault: str) -> None:
        if fault == "broker killed":
            self._site.kill()
            self._site.revive()
        elif fault == "query killed":
            self._run(self._rng.randrange(2), left=self._rng.choice(["planned", "written"]))
        elif fault == "user rotated":
            for query in self._queries:
                query.user = "second" if query.user == "first" else "first"
        elif fault == "backup":
            self._site.save()
            for query in self._queries:
                query.backed_up()
        elif fault == "restored":
            self._site.put_back()
            for query in self._queries:
                query.restored()

    @contextmanager
    def _killed_under(self, fault: str) -> Iterator[None]:
        if fault != "killed under them":
            yield
            return

        def strike() -> None:
            time.sleep(wait)
            self._site.kill()

        wait = self._rng.random() * _UNDER_SECONDS
        self._strike = threading.Thread(target=strike, daemon=True)
        self._strike.start()
        try:
            yield
        finally:
            self._strike.join()
            self._strike = None
            self._site.revive()

    def _run(self, batches: int, left: str = "none") -> None:
        for query in self._queries:
            self._run_one(query, batches, left)

    def _run_one(self, query: Query, batches: int, left: str) -> None:
        """Run a query, and do what its errors ask for."""
        tolerant = False
        before = len(query.checkpoint.offsets)
        self._errors.clear()
        for _ in range(_TRIES):
            try:
                query.run(batches, left=left, tolerant=tolerant)
                break
            except DataLoss as error:
                self.runs["failed, as data is lost"] += 1
                query.said.append(str(error))
                tolerant = True
            except HarebellError as error:
                self._after(query, str(error))
        else:
            raise AssertionError(f"{self._where}: it does not go on: {self._errors}")
        self.runs["ended well"] += 1
        # Without a micro-batch the checkpoint is as before, and the next run says the same again.
        moved = len(query.checkpoint.offsets) > before
        said = [text for text in query.said + query.said_by_sinks if _OUTAGE not in text]
        if moved and (query.expected or said):
            heard = f"{self._where}, {query.cell.kind}: {said}"
            assert query.expected or not said, f"{heard} though nothing was restored"
            assert said, f"{heard}, though a restore took rows that were read"
            self.runs["with something said"] += 1
        if moved:
            query.expected = False
            query.said.clear()
            query.said_by_sinks.clear()

    def _after(self, query: Query, text: str) -> None:
        """Hand the publishers over; anything else the next run has to get over."""
        self._errors.append(text)
        if self._strike is not None:
            # A run that begins while the broker is away fails at once.
            self._strike.join()
        if "hand-over" not in text:
            assert self._strike is not None, f"{self._where}: {text}"
            self.runs["failed as the broker was killed"] += 1
            return
        self.runs["failed until a hand-over"] += 1
        name = f"spark/{query.exchanges['exchange'].queue}"
        for broker in (self._site.broker, self._elsewhere):
            run_harebell(
                *("publishers", "hand-over", name, "--to", query.user),
                env={"HAREBELL_DATA_DIR": str(broker.data_dir)},
            )

    def end(self) -> str:
        """Run the queries to their ends, check every sink, and return what was done."""
        self._run(1_000)
        counts: Counter[str] = Counter()
        for query in self._queries:
            counts += query.check(self._where)
        sent = sum(query.sent for query in self._queries)
        return (
            f"{sent} messages; {_listed(self.faults)}; runs: {_listed(self.runs)}; "
            f"rows: {_listed(counts)}"
        )


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def play(site: Weeks, elsewhere: RunningBroker, seed: int, cycles: int) -> str:
    """Run so many cycles; return what was done."""
    run = DayAfter(site, elsewhere, seed)
    for _ in range(cycles):
        run.cycle()
    return run.end()
