"""Which brokers of a store run: those whose beats grow."""

from __future__ import annotations

import pytest

from harebell.cluster.postgresql import ownership
from harebell.cluster.postgresql.database import Database
from harebell.cluster.postgresql.figures import cluster_rows
from harebell.cluster.postgresql.ownership import (
    STANDBY,
    RunningBrokers,
    forget_node,
    report_node,
)
from harebell.cluster.postgresql.tables import Tables
from tests.postgresql.servers import PostgresServer

SECONDS = 10.0


class Clock:
    """Seconds that go by when the test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which brokers are gone."""
    made = Clock()
    monkeypatch.setattr(ownership, "now", made)
    return made


def test_a_broker_whose_beat_stays_the_same_is_gone_until_it_reports_again(
    postgresql: PostgresServer, database: str, clock: Clock
) -> None:
    tables = Tables("harebell")
    with Database(postgresql.url(database), "harebell", 3_000, "one", "fsync").connect() as link:
        tables.make(link)
        brokers = RunningBrokers(SECONDS)

        def states() -> dict[str, str]:
            rows = cluster_rows(1, brokers.rows(link, tables))
            assert all(row["running"] == (row["state"] != "gone") for row in rows)
            return {row["name"]: row["state"] for row in rows}

        for name in ("one", "two"):
            report_node(link, tables, name, "host:5672", STANDBY, "1")
        assert states() == {"one": "standby", "two": "standby"}
        clock.seconds += SECONDS + 0.1
        report_node(link, tables, "two", "host:5672", STANDBY, "1")
        assert states() == {"one": "gone", "two": "standby"}
        report_node(link, tables, "one", "host:5672", STANDBY, "1")
        assert states()["one"] == "standby"
        forget_node(link, tables, "two")
        assert list(states()) == ["one"]


def test_a_broker_that_is_gone_for_long_is_not_listed_any_more(
    postgresql: PostgresServer, database: str, clock: Clock
) -> None:
    tables = Tables("harebell")
    with Database(postgresql.url(database), "harebell", 3_000, "one", "fsync").connect() as link:
        tables.make(link)
        brokers = RunningBrokers(SECONDS)
        for name in ("one", "two", "back"):
            report_node(link, tables, name, "host:5672", STANDBY, "1")
        assert len(brokers.rows(link, tables)) == 3
        clock.seconds += SECONDS + 0.1
        report_node(link, tables, "two", "host:5672", STANDBY, "1")
        brokers.rows(link, tables)
        report_node(link, tables, "back", "host:5672", STANDBY, "1")
        assert brokers.forget_gone(link, tables, SECONDS) == ["back", "one"]
        assert [row.name for row in brokers.rows(link, tables)] == ["back", "two"]
        assert brokers.forget_gone(link, tables, SECONDS) == []
