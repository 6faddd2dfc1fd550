"""The primary dies, Patroni promotes its standby, and brokers go on with everything confirmed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.patience import eventually
from tests.postgresql.brokers import StoreBroker, owner_of
from tests.postgresql.history import History
from tests.postgresql.patroni import TTL_SECONDS, Patroni

_DATABASE = "chaos"
_CYCLES = 10
_LONG_LEASE_MS = 30_000
_WORK_SECONDS = 1.0
_LONGER_SECONDS = 10.0


def _fail_over(cycles: int, seed: int, *, machine: bool) -> str:
    """Kill primaries, or their machines, while clients work, and judge what they saw."""
    history = History(seed)
    pauses = []
    with Patroni() as cluster, ExitStack() as stack:
        cluster.create_database(_DATABASE)
        url = cluster.url(_DATABASE)
        brokers = [
            stack.enter_context(StoreBroker(name, url, ["--durability=replicated"]))
            for name in ("a", "b")
        ]
        for _ in range(cycles):
            owner = _declared(history, brokers)
            old = cluster.leader()
            at = time.monotonic() + _WORK_SECONDS
            strike = old.kill_machine if machine else old.kill_server
            # A server is replaced within the lease, perhaps.
            end_at = at + (3 * TTL_SECONDS if machine else _LONGER_SECONDS)
            went = history.load.run(owner.port, end_at, meanwhile=[(at, strike)])
            assert went or not machine, f"{owner.name} still serves without a database"
            cluster.leader(other_than=old)
            promoted = time.monotonic()
            if machine:
                # In its strict mode nothing is committed before there is a standby again.
                old.return_empty()
            owner_of(brokers, seconds=3 * TTL_SECONDS)
            cluster.wait_for_standby()
            pauses.append(promoted - at)
        for each in brokers:
            each.kill()
            assert "Traceback" not in each.log, each.log
        with StoreBroker("judge", url, lease_ms=_LONG_LEASE_MS) as broker:
            broker.wait_until_it_serves()
            verdict = history.drain(broker.port, f"HAREBELL_SEED={seed}")
    pauses.sort()
    what = "machines" if machine else "servers"
    return f"{cycles} {what}; {verdict}; promoted after {pauses[0]:.0f} to {pauses[-1]:.0f} s"


def _declared(history: History, brokers: list[StoreBroker]) -> StoreBroker:
    """The owner, which has what clients use; it may be another one before it has all of that."""
    found: list[StoreBroker] = []

    def declared() -> bool:
        found.append(owner_of(brokers))
        try:
            history.load.declare(found[-1].port)
        except ConnectionError:
            return False
        return True

    assert eventually(declared)
    return found[-1]


@pytest.mark.timeout(300)
def test_nothing_confirmed_is_lost_when_patroni_promotes_the_standby(
    seed: int, counted: Callable[[str], None]
) -> None:
    counted(_fail_over(1, seed, machine=False))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_nothing_confirmed_is_lost_when_patroni_promotes_again_and_again(
    seed: int, counted: Callable[[str], None]
) -> None:
    counted(_fail_over(_CYCLES, seed, machine=True))
