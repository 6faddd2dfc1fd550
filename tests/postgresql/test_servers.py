"""The servers of the tests are real: they keep, lose, follow and refuse as PostgreSQL does."""

from __future__ import annotations

import os
import threading
import time

import psycopg
import pytest

from tests.patience import eventually
from tests.postgresql.servers import PostgresServer, fresh_database
from tests.relay import relay


def test_a_database_is_reached_over_tcp_with_its_password(
    postgresql: PostgresServer, database: str
) -> None:
    with psycopg.connect(postgresql.url(database)) as connection:
        connection.execute("CREATE TABLE t (n int)")
        row = connection.execute("SELECT current_user, current_setting('fsync')").fetchone()
    assert row == ("harebell", "on")


def test_a_wrong_password_is_refused(postgresql: PostgresServer, database: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgresql.url(database, password="wrong"))


def test_a_committed_row_survives_kill_9_of_every_process() -> None:
    with PostgresServer(settings={"work_mem": "1MB"}) as server, fresh_database(server, "d"):
        assert server.execute("SHOW work_mem") == [("1MB",)]
        server.execute("CREATE TABLE t (n int)", "d")
        server.execute("INSERT INTO t VALUES (7)", "d")
        first = server.pid
        server.kill()
        assert not server.running
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url("d"))
        server.start()
        assert server.pid != first
        assert server.execute("SELECT n FROM t", "d") == [(7,)]
        server.restart()
        assert server.execute("SELECT n FROM t", "d") == [(7,)]


def test_a_commit_waits_for_the_standby_that_is_then_promoted() -> None:
    with PostgresServer() as primary:
        primary.create_database("d")
        with relay(primary.port) as between:
            standby = primary.standby("standby1", through=between.port)
            primary.requires_standby("standby1")
            primary.execute("CREATE TABLE t (n int)", "d")
            primary.execute("INSERT INTO t VALUES (1)", "d")
            between.silent = True
            with primary.connect("d") as connection:
                notices: list[str] = []
                connection.add_notice_handler(lambda seen: notices.append(str(seen.severity)))

                def give_up() -> None:
                    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                    assert eventually(lambda: primary.execute(waits))
                    connection.cancel_safe()

                # A wait that is given up is no failure: here the row is committed already.
                giving_up = threading.Thread(target=give_up, daemon=True)
                giving_up.start()
                connection.execute("INSERT INTO t VALUES (2)")
                giving_up.join()
                assert notices == ["WARNING"]
            between.silent = False
            primary.execute("INSERT INTO t VALUES (3)", "d")
        primary.kill()
        standby.promote()
    # It has outlasted its primary.
    with standby:
        assert standby.execute("SELECT n FROM t ORDER BY n", "d") == [(1,), (2,), (3,)]
        standby.execute("INSERT INTO t VALUES (4)", "d")


def test_a_paused_server_answers_when_it_goes_on(postgresql: PostgresServer, database: str) -> None:
    with psycopg.connect(postgresql.url(database), autocommit=True) as connection:
        connection.execute("SELECT 1")
        postgresql.pause()
        connection.pgconn.send_query(b"SELECT 2")
        time.sleep(0.2)
        connection.pgconn.consume_input()
        assert connection.pgconn.is_busy()
        postgresql.resume()
        assert _answer(connection) == b"2"


def _answer(connection: psycopg.Connection[tuple[object, ...]]) -> bytes | None:
    """The one value of a query that was sent; waiting for it inside of libpq keeps all threads."""

    def answered() -> bool:
        connection.pgconn.consume_input()
        return not connection.pgconn.is_busy()

    assert eventually(answered)
    result = connection.pgconn.get_result()
    assert result is not None
    assert connection.pgconn.get_result() is None
    return result.get_value(0, 0)


def test_a_silent_relay_loses_nothing_and_a_cut_one_breaks_connections(
    postgresql: PostgresServer, database: str
) -> None:
    with relay(postgresql.port) as between:
        url = postgresql.url(database, port=between.port)
        with psycopg.connect(url, autocommit=True) as connection:
            between.silent = True
            connection.pgconn.send_query(b"SELECT 2")
            time.sleep(0.1)
            connection.pgconn.consume_input()
            assert connection.pgconn.is_busy()
            between.silent = False
            assert _answer(connection) == b"2"
            between.cut()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 3")


def test_a_server_that_is_removed_leaves_neither_processes_nor_files() -> None:
    with PostgresServer() as server:
        home, pid = server.home, server.pid
    assert not home.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
