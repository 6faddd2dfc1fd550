"""Brokers over a primary with a synchronous standby, and everything that happens to them.

    clients --> owner  --relay--> primary --relay--> standby
                other  --relay-/

A cycle runs the clients of the load at the owner, and one fault while they work. Then somebody owns
the store again, and the next cycle goes on with the same messages and the same ledger. A watcher
notes when the other broker begins to serve, so that an owner that still serves then is found.

| fault | what is done |
|---|---|
| owner | kill -9 of the owner; it comes back as a standby with an empty data directory |
| primary | kill -9 of every process of the primary; the standby is promoted, and gets a standby |
| database | nothing passes between the owner and the primary for longer than the lease |
| clients | the connections of clients are cut |
| standby | nothing passes between the primary and its standby for a moment |
| pause | SIGSTOP of the owner for longer than the lease |
| drain | SIGTERM of the owner |
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from random import Random
from types import TracebackType

from tests.patience import eventually
from tests.postgresql.brokers import SMALL_GENERATIONS, StoreBroker, owner_of
from tests.postgresql.history import History
from tests.postgresql.servers import PostgresServer
from tests.relay import Relay
from tests.robustness.ledger import Verdict

FAULTS = ("owner", "primary", "database", "clients", "standby", "pause", "drain")
_DATABASE = "chaos"
_LEASE_MS = 1_000
"""Short, so that fail-overs are; commits of a loaded machine still fit into a quarter of it."""
_FIRST_SECONDS, _LAST_SECONDS = 0.1, 0.8
_LONGER = 1.8 * _LEASE_MS / 1000
"""Longer than a lease."""
_BRIEF = 0.4 * _LEASE_MS / 1000
_MAX_SECONDS = 20.0
_LONG_LEASE_MS = 30_000
_POLL_SECONDS = 0.05
_SHOWN = 6_000
_MAY_STAY = ("primary", "standby")
"""Faults that an owner may survive, if they are over before its lease is."""


class Watcher:
    """Notes when brokers answer that did not own the store.

    Args:
        history: where to note it.
        others: these brokers.

    Attributes:
        at: when the first of them served, in seconds of `time.monotonic`; 0 for not yet.
    """

    def __init__(self, history: History, others: list[StoreBroker]) -> None:
        self.at = 0.0
        self._history = history
        self._others = others
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.is_set():
            for each in self._others:
                if each.serves():
                    self.at = time.monotonic()
                    self._history.tenures.speaks(object(), each.name, self.at)
                    return
            time.sleep(_POLL_SECONDS)

    def end(self) -> None:
        """Watch no more."""
        self._over.set()
        self._thread.join()


class Chaos:
    """Two brokers, two servers and the load; a context manager.

    Args:
        seed: decides what is sent and when faults come.

    Attributes:
        history: of everything.
        done: how often each fault has happened.
        pauses: for each fault, how many seconds until somebody served after it.
    """

    def __init__(self, seed: int) -> None:
        self.history = History(seed)
        self.done: Counter[str] = Counter()
        self.pauses: dict[str, list[float]] = {}
        self._rng = Random(seed)
        self._names = (f"standby{number}" for number in itertools.count(1))
        self._stack = ExitStack()
        self.brokers: list[StoreBroker] = []
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise

    def _start(self) -> None:
        self.primary = self._stack.enter_context(PostgresServer())
        self.primary.create_database(_DATABASE)
        self._add_standby()
        self.relays: dict[str, Relay] = {}
        for name in ("a", "b"):
            between = self.relays[name] = Relay(self.primary.port)
            self._stack.callback(between.close)
            url = self.primary.url(_DATABASE, port=between.port)
            flags = ["--durability=replicated"]
            broker = self._stack.enter_context(
                StoreBroker(name, url, flags, _LEASE_MS, SMALL_GENERATIONS)
            )
            self.brokers.append(broker)
        self.owner = owner_of(self.brokers)
        for each in self.brokers:
            # Else it may still be starting when it is to take over.
            if each is not self.owner:
                assert eventually(partial(each.has_logged, "standing by")), each.log

    def __enter__(self) -> Chaos:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            everyone: list[StoreBroker | PostgresServer] = [*self.brokers, self.primary]
            for each in everyone:
                sys.stdout.write(f"--- {each.name}:\n{each.log[-_SHOWN:]}\n")
        self._stack.close()

    def play(self, fault: str) -> None:
        """A cycle with a fault.

        Args:
            fault: which one.
        """
        owner = self.owner
        others = [each for each in self.brokers if each is not owner]
        load = self.history.load
        with suppress(ConnectionError):
            load.declare(owner.port)
        watcher = Watcher(self.history, others)
        # Not before: what is declared may take longer than clients are to work.
        at = time.monotonic() + self._rng.uniform(_FIRST_SECONDS, _LAST_SECONDS)
        struck = [at]

        def strike() -> None:
            struck[0] = time.monotonic()
            getattr(self, f"_{fault}")()

        meanwhile: list[tuple[float, Callable[[], object]]] = [(at, strike)]
        if heal := self._healing(fault):
            meanwhile.append((at + heal[0], heal[1]))
        try:
            end_at = at + (_LONGER if fault in _MAY_STAY else _MAX_SECONDS)
            went = load.run(owner.port, end_at, meanwhile=meanwhile)
            assert went or fault in _MAY_STAY, f"{fault}: {owner.name} still serves"
            if fault == "database":
                owner_of(others)
                self._heal_database(owner)
            if not owner.running:
                owner.start()
            self.owner = owner_of(self.brokers)
            if went:
                pause = (watcher.at or time.monotonic()) - struck[0]
                self.pauses.setdefault(fault, []).append(pause)
        finally:
            watcher.end()
        self.done[fault] += 1

    def judge(self, where: str) -> Verdict:
        """Take what is left, and judge everything that has happened."""
        owner = owner_of(self.brokers)
        before = len(owner.log)
        # On a machine that stands still it loses its store before it has ended.
        assert owner.stop() == 0 or "not own the store any more" in owner.log[before:], owner.log
        for each in self.brokers:
            each.kill()
            assert "Traceback" not in each.log, each.log
        url = self.primary.url(_DATABASE)
        # On a slow machine a short lease would end while everything is read.
        with StoreBroker("judge", url, lease_ms=_LONG_LEASE_MS) as broker:
            broker.wait_until_it_serves()
            return self.history.drain(broker.port, where)

    # --- faults ---------------------------------------------------------------------------------

    def _healing(self, fault: str) -> tuple[float, Callable[[], object]] | None:
        if fault == "standby":
            return _BRIEF, self._heal_standby
        if fault == "pause":
            # That is when another broker serves.
            return 0.0, self.owner.resume
        return None

    def _owner(self) -> None:
        self.owner.forget()

    def _drain(self) -> None:
        self.owner.stop()

    def _pause(self) -> None:
        self.owner.pause()
        self.history.read_what_has_come()
        owner_of([each for each in self.brokers if each is not self.owner])

    def _database(self) -> None:
        self.relays[self.owner.name].silent = True

    def _heal_database(self, owner: StoreBroker) -> None:
        self.relays[owner.name].silent = False
        self.relays[owner.name].cut()

    def _clients(self) -> None:
        for link in self.history.load.links:
            link.close()

    def _standby(self) -> None:
        self._between.silent = True

    def _heal_standby(self) -> None:
        self._between.silent = False

    def _primary(self) -> None:
        old = self.primary
        old.kill()
        self._between.close()
        self.standby.promote()
        self.primary = self.standby
        for each in self.relays.values():
            each.target = self.primary.port
            each.cut()
        old.remove()
        self._add_standby()

    def _add_standby(self) -> None:
        name = next(self._names)
        self._between = Relay(self.primary.port)
        self._stack.callback(self._between.close)
        self.standby = self.primary.standby(name, through=self._between.port)
        self._stack.callback(self.standby.remove)
        # A promoted one must not confirm anything alone, as Patroni sees to in its strict mode.
        for server in (self.primary, self.standby):
            server.requires_standby("*")
