"""kill -9 of everything that a message meets between a queue and where SQL puts it.

One driver runs four queries (`chaos_driver`) over what comes into a classic queue and a stream. A
cycle kills a Python process, an executor and the broker while micro-batches are under way, the
driver when one was just committed, and then all four at once. What was killed is started again as
in real life: the broker on its data directory and its port, the driver on its checkpoints; the
rest is Spark's own business. In the end everything is processed, and every row must be there once.

Where a driver died just after Spark had committed a micro-batch, that commit is taken away again:
so a driver that dies between the sink's commit and Spark's leaves it behind.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import harebell
from harebell.client import blocking
from harebell.spark.runtime.java import find_java
from harebell.spark.runtime.spark_home_cache import find_cache, make_overlay
from tests.patience import eventually
from tests.ports import free_port
from tests.robustness.lives import kill
from tests.running import RunningBroker, command, environment
from tests.spark.chaos_driver import Flow, Plan
from tests.spark.families import end as end_family
from tests.spark.families import members
from tests.spark.outcome import Inputs, Row, Verdict, last_of, read_lake, row_of
from tests.spark.victims import Victims, end

ROOT = Path(__file__).parents[2]
SOURCE = Path(harebell.__file__).parents[1]
CLUSTER = "local-cluster[2,1,700]"
ALONE = "local[2]"
FLOWS = [
    Flow("classic_lake", "classic.lake", None),
    Flow("classic_out", "classic.out", "out"),
    Flow("stream_lake", "stream", None),
    Flow("stream_out", "stream", "out"),
]
VICTIMS = ("worker", "executor", "driver", "broker")
TOGETHER = "together"
_ROWS = 250
_BATCH = 100
_DRAINED = 2_000
_PATIENCE_SECONDS = 300.0
_MORE_DRIVERS = 2
_SPREAD_SECONDS = 1.5
_MOMENT_SECONDS = 3.0
_LOOK_SECONDS = 0.002


@dataclass
class Counts:
    """What a run has done."""

    kills: Counter[str] = field(default_factory=Counter)
    halfway: int = 0
    withdrawn: int = 0
    restarts: int = 0

    def __str__(self) -> str:
        kills = ", ".join(f"{count} {victim}" for victim, count in self.kills.items())
        return (
            f"killed {kills}; {self.halfway} micro-batches were under way, {self.withdrawn} "
            f"commits were taken back, {self.restarts} queries failed and went on"
        )


class Brokers(Protocol):
    """What serves the queries, and is killed.

    Attributes:
        port: where it is reached, whatever was killed.
    """

    port: int

    @property
    def data_dir(self) -> Path:
        """The data directory of the broker that serves."""

    @property
    def log(self) -> str:
        """What was logged."""

    def kill(self) -> None:
        """kill -9 of the broker that serves."""

    def restart(self) -> None:
        """Start it again, and wait until somebody serves."""

    def remove(self) -> None:
        """End everything and remove its files."""


class OneBroker:
    """A broker over a data directory.

    Args:
        directory: where the data directory is made.

    Attributes:
        port: where it listens.
    """

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.data_dir = directory / "data"
        self._broker = self._start()

    def _start(self) -> RunningBroker:
        flags = ("--data-dir", str(self.data_dir), "--segment-bytes", "262144")
        return RunningBroker("--port", str(self.port), *flags)

    @property
    def log(self) -> str:
        """What it logged in this life."""
        return self._broker.log

    def kill(self) -> None:
        """kill -9."""
        kill(self._broker)

    def restart(self) -> None:
        """Start it again on its data directory."""
        self._broker.remove()
        self._broker = self._start()

    def remove(self) -> None:
        """End it."""
        kill(self._broker)
        self._broker.remove()


class Chaos:
    """A broker, a driver, and what becomes of them.

    Args:
        directory: for everything.
        seed: every random choice is made from it.
        broker: serves; None for one over a data directory.
        kinds: what is killed by itself.
    """

    def __init__(
        self,
        directory: Path,
        seed: int,
        broker: Brokers | None = None,
        kinds: Sequence[str] = VICTIMS,
    ) -> None:
        self.counts = Counts()
        self._directory = directory
        self._kinds = kinds
        self._rng = random.Random(seed)
        self.inputs = Inputs(random.Random(seed))
        self._broker = OneBroker(directory) if broker is None else broker
        self._url = f"amqp://127.0.0.1:{self._broker.port}/%2F"
        self._plan = Plan(self._url, CLUSTER, FLOWS, _BATCH)
        self._driver: subprocess.Popen[bytes] | None = None
        self._drivers: list[subprocess.Popen[bytes]] = []
        # Executors have their directories in Spark's own, which is not the tests' to fill.
        home = make_overlay(replace(find_cache(find_java()), directory=directory / "places"))
        self._environment = {"SPARK_HOME": str(home), "PYTHONPATH": f"{SOURCE}:{ROOT}"}
        self._declare()

    # --- what is started --------------------------------------------------------------------------

    def _declare(self) -> None:
        with blocking.connect(self._url) as connection:
            channel = connection.channel()
            channel.declare_exchange("in", "fanout", durable=True)
            channel.declare_exchange("out", "topic", durable=True)
            stream = {"x-queue-type": "stream"}
            for queue in sorted({flow.queue for flow in FLOWS}):
                arguments = stream if queue == "stream" else None
                channel.declare_queue(queue, durable=True, arguments=arguments)
                channel.bind_queue(queue, "in", "")
            for flow in FLOWS:
                if flow.exchange is not None:
                    channel.declare_queue(f"out.{flow.name}", durable=True)
                    channel.bind_queue(f"out.{flow.name}", flow.exchange, f"{flow.name}.#")

    def start_driver(self, *, drain: bool = False) -> None:
        """Start the queries, or let them go on.

        Args:
            drain: on threads of the driver, and until everything is processed.
        """
        (self._directory / "started").unlink(missing_ok=True)
        plan = self._plan
        if drain:
            plan = replace(plan, master=ALONE, rows=_DRAINED, drain=True)
        plan.write(self._directory)
        with (self._directory / "driver.log").open("ab") as log:
            self._driver = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.chaos_driver", str(self._directory)],
                cwd=ROOT,
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._drivers.append(self._driver)

    def _end_drivers(self, but: int = 0) -> None:
        """End the drivers and what has outlived them, but for so many of the last ones."""
        while len(self._drivers) > but:
            end_family(self._drivers.pop(0))

    def close(self) -> None:
        """End what is still there."""
        self._end_drivers()
        self._broker.remove()

    # --- rounds -----------------------------------------------------------------------------------

    def publish(self) -> None:
        """More rows, confirmed."""
        with blocking.connect(self._url) as connection:
            rows = iter(self.inputs.more(_ROWS))
            connection.channel().publish_many(rows, exchange="in", routing_key="", delivery_mode=2)

    def cycle(self, singly: int, *, last: bool = False) -> None:
        """Kill some in turn, in any order, and then all together.

        Args:
            singly: how many kinds of processes are killed by themselves.
            last: whether the queries end when they have processed everything after that. Before
                that more drivers are killed, if no commit has been taken back yet.
        """
        victims = self._rng.sample(self._kinds, min(singly, len(self._kinds)))
        for victim in victims:
            self._round(victim)
        # A driver that died halfway through a micro-batch has committed nothing to take back.
        for _ in range(_MORE_DRIVERS):
            if last and not self.counts.withdrawn:
                self._round("driver")
        self._round(TOGETHER, last=last)

    def _round(self, victim: str, *, last: bool = False) -> None:
        before = self._commits()
        self.publish()
        # Whatever was killed before, every query has done something since.
        self._wait(lambda: self._advanced(before), "every query to commit a micro-batch")
        self._end_drivers(but=1)
        self.publish()
        time.sleep(self._rng.random() * _SPREAD_SECONDS)
        flow = self._rng.choice(FLOWS)
        if victim == "driver":
            done = self._last(flow)
            # As a rule; it may have processed everything already.
            eventually(lambda: self._last(flow) > done, _MOMENT_SECONDS)
            victims = self._victims(victim)
        else:
            victims = self._victims_at_work(victim, flow)
        self._kill(victim, victims)
        if victim in ("broker", TOGETHER):
            self._look_at_the_broker()
            self._broker.restart()
        if victim in ("driver", TOGETHER):
            self._take_commits_back(flow)
            self.start_driver(drain=last)

    def _victims(self, victim: str) -> Victims:
        """The processes that can be killed."""
        assert self._driver is not None, "it was started"
        found = Victims(self._driver.pid)
        while victim != "broker" and not (found.workers and found.executors):
            self._still_there()
            time.sleep(_LOOK_SECONDS)
            found = Victims(self._driver.pid)
        return found

    def _victims_at_work(self, victim: str, flow: Flow) -> Victims:
        """The processes that can be killed while a micro-batch is under way, that of a query first.

        The queries may have processed everything already; then they get more.
        """
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            eventually(lambda: self._halfway(flow), _MOMENT_SECONDS)
            found = self._victims(victim)
            if any(map(self._halfway, FLOWS)):
                return found
            self._still_there()
            assert time.monotonic() < until, f"no micro-batch is ever under way\n{self._said()}"
            self.publish()

    def _kill(self, victim: str, victims: Victims) -> None:
        all_of_them = victim == TOGETHER
        self.counts.kills[victim] += 1
        self.counts.halfway += sum(self._halfway(flow) for flow in FLOWS)
        chosen: list[int] = []
        if victim == "worker" or all_of_them:
            chosen.append(self._rng.choice(victims.workers))
        if victim == "executor" or all_of_them:
            chosen.append(self._rng.choice(victims.executors))
        if victim == "driver" or all_of_them:
            chosen += victims.drivers
        self._rng.shuffle(chosen)
        for pid in chosen:
            end(pid)
        # A signal takes a moment to arrive, and what is dying may end what it is at.
        driver = self._driver
        assert driver is not None, "it was started"
        assert eventually(lambda: not set(chosen) & set(members(driver.pid)))
        if victim == "broker" or all_of_them:
            self._broker.kill()
        if victim == "driver" or all_of_them:
            driver.wait()

    def _take_commits_back(self, always: Flow) -> None:
        for flow in FLOWS:
            last = self._last(flow)
            spared = flow != always and self._rng.random() < 0.5
            if last < 0 or spared or self._halfway(flow):
                continue
            checkpoint = self._directory / flow.name / "checkpoint"
            for name in (f"{last}", f".{last}.crc"):
                (checkpoint / "commits" / name).unlink(missing_ok=True)
            self.counts.withdrawn += 1

    # --- what is seen -----------------------------------------------------------------------------

    def _commits(self) -> list[int]:
        return [self._last(flow) for flow in FLOWS]

    def _last(self, flow: Flow) -> int:
        """The last micro-batch that Spark has committed."""
        return last_of(self._directory / flow.name / "checkpoint" / "commits")

    def _advanced(self, before: list[int]) -> bool:
        return all(now > then for now, then in zip(self._commits(), before, strict=True))

    def _halfway(self, flow: Flow) -> bool:
        offsets = self._directory / flow.name / "checkpoint" / "offsets"
        return last_of(offsets) > self._last(flow)

    def _wait(self, happened: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not happened():
            self._still_there()
            assert time.monotonic() < until, f"waited for {what}: {self._commits()}\n{self._said()}"
            time.sleep(_LOOK_SECONDS)

    def _still_there(self) -> None:
        assert self._driver is not None, "it was started"
        assert self._driver.poll() is None, f"the driver has ended by itself\n{self._said()}"

    def _said(self) -> str:
        log = (self._directory / "driver.log").read_text(errors="replace")
        return "\n".join(self.ends()[-4:]) + "\n" + log[-4_000:]

    def ends(self) -> list[str]:
        """Why queries have ended, other than by being killed."""
        path = self._directory / "ends"
        text = path.read_text() if path.exists() else ""
        # A driver that was killed while it wrote has left part of a line.
        whole = [line for line in text.splitlines() if line.endswith('"}')]
        return [json.loads(line)["why"] for line in whole]

    def _look_at_the_broker(self) -> None:
        for trouble in ("Traceback", "INTERNAL_ERROR"):
            assert trouble not in self._broker.log, self._broker.log

    # --- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Wait until the driver has processed everything and ended."""
        assert self._driver is not None, "it was started"
        try:
            code = self._driver.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the queries do not end\n{self._said()}") from None
        assert code == 0, self._said()
        self._look_at_the_broker()
        self.counts.restarts = len(self.ends())

    def verdicts(self) -> Iterator[tuple[str, Verdict]]:
        """What came out of each query, judged."""
        for flow in FLOWS:
            committed = self._last(flow)
            if flow.exchange is None:
                lake = read_lake(self._directory / flow.name / "lake")
                yield flow.name, self.inputs.judge(lake.rows, lake.batches, committed)
            else:
                yield flow.name, self.inputs.judge(self._taken(f"out.{flow.name}"))

    def _taken(self, queue: str) -> list[Row]:
        with blocking.connect(self._url) as connection:
            channel = connection.channel()
            found = []
            while (message := channel.get(queue, no_ack=True)) is not None:
                found.append(row_of(bytes(message.body)))
            return found

    def left(self) -> int:
        """Messages that wait in the classic queues or are leased."""
        with blocking.connect(self._url) as connection:
            channel = connection.channel()
            ready = [
                channel.declare_queue(flow.queue, passive=True).message_count
                for flow in FLOWS
                if flow.queue != "stream"
            ]
        requested = [
            command(),
            "leases",
            "list",
            "--json",
            "--data-dir",
            str(self._broker.data_dir),
        ]
        # A variable that says how long the tests run is none of the broker's.
        done = subprocess.run(requested, capture_output=True, check=True, env=environment())
        groups = json.loads(done.stdout)
        return sum(ready) + sum(int(group["messages"]) for group in groups)


@contextmanager
def chaos(
    directory: Path,
    seed: int,
    cycles: int,
    singly: int = len(VICTIMS),
    broker: Brokers | None = None,
    kinds: Sequence[str] = VICTIMS,
) -> Iterator[Chaos]:
    """A run that is over: everything was killed often, and everything is processed."""
    run = Chaos(directory, seed, broker, kinds)
    try:
        run.start_driver()
        for number in range(cycles):
            run.cycle(singly, last=number == cycles - 1)
        run.finish()
        yield run
    finally:
        run.close()
