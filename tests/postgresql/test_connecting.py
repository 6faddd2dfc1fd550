"""The ways in which a broker gets to its database: URLs, roles, settings, poolers and standbys."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from harebell.client import blocking
from harebell.management.control.client import ask_command
from tests.patience import SECONDS, eventually
from tests.postgresql.brokers import StoreBroker
from tests.postgresql.pooler import pooler
from tests.postgresql.servers import PASSWORD, USER, PostgresServer, address, fresh_database

_ENDS_SECONDS = SECONDS


def _works(broker: StoreBroker, messages: int = 20) -> None:
    """Confirm messages of a broker, over the event loop and over the thread."""
    broker.wait_until_it_serves()
    url = f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F"
    with blocking.connect(url, call_timeout=_ENDS_SECONDS) as connection:
        channel = connection.channel()
        channel.declare_queue("q", durable=True)
        for size in (10, 100_000):
            for _ in range(messages):
                channel.publish(bytes(size), routing_key="q", delivery_mode=2)


def _refused(url: str, *variables: str) -> str:
    """The sentence of a broker that does not start."""
    with StoreBroker("a", url, prefix=["env", *variables]) as broker:
        assert broker.ended(_ENDS_SECONDS) not in (0, -9), broker.log
        errors = [line for line in broker.log.splitlines() if line.startswith("Error:")]
        assert len(errors) == 1, broker.log
        assert "Traceback" not in broker.log
    return errors[0]


# --- where ---------------------------------------------------------------------------------------


def test_a_service_and_a_password_file_say_where_the_database_is(
    postgresql: PostgresServer, database: str, tmp_path: Path
) -> None:
    service, passwords = tmp_path / "service", tmp_path / "passwords"
    service.write_text(
        f"[hb]\nhost=127.0.0.1\nport={postgresql.port}\ndbname={database}\nuser={USER}\n"
    )
    passwords.write_text(f"*:*:*:{USER}:{PASSWORD}\n")
    passwords.chmod(0o600)
    files = [f"PGSERVICEFILE={service}", f"PGPASSFILE={passwords}"]
    with StoreBroker("a", "postgresql:///?service=hb", prefix=["env", *files]) as broker:
        _works(broker)
        assert eventually(lambda: "PostgreSQL of the service 'hb'" in broker.log)
    with StoreBroker("a", "postgresql://", prefix=["env", "PGSERVICE=hb", *files]) as broker:
        _works(broker)
        place = f"PostgreSQL at 127.0.0.1:{postgresql.port}, database '{database}'"
        assert eventually(lambda: place in broker.log), broker.log
    said = _refused("postgresql:///?service=nope", *files)
    assert 'definition of service "nope" not found' in said
    passwords.chmod(0o644)
    assert "no password supplied" in _refused("postgresql:///?service=hb", *files)


def test_a_password_may_have_any_character(postgresql: PostgresServer, database: str) -> None:
    password = 'p@:/?#[]%25 &="\\ä€'
    postgresql.execute(f"CREATE ROLE odd LOGIN PASSWORD '{password}'")
    postgresql.execute(f"GRANT CREATE ON DATABASE {database} TO odd")
    port = postgresql.port
    with StoreBroker(
        "a", address(database, port, user="odd", password=quote(password, safe=""))
    ) as broker:
        _works(broker)
    said = _refused(f"postgresql://odd:{password}@127.0.0.1:{port}/{database}")
    assert "special characters in it are written as %40" in said


def test_a_broker_waits_for_the_promotion_of_a_standby_that_it_was_given() -> None:
    with PostgresServer() as primary, fresh_database(primary, "d"):
        standby = primary.standby("standby1")
        with StoreBroker("a", standby.url("d")) as broker:
            assert eventually(lambda: "it is a standby, or default_tr" in broker.log), broker.log
            assert eventually(lambda: "name the hosts of all servers in storage" in broker.log)
            primary.kill()
            standby.promote()
            try:
                _works(broker)
            finally:
                broker.kill()
                standby.remove()


def test_a_host_that_does_not_answer_delays_the_first_connection_alone(
    postgresql: PostgresServer, database: str
) -> None:
    # As the machine of an old primary that was lost: nobody says that nobody listens.
    with socket.create_server(("127.0.0.1", 0)) as lost:
        place = f"127.0.0.1:{lost.getsockname()[1]},127.0.0.1:{postgresql.port}"
        url = f"postgresql://{USER}:{quote(PASSWORD)}@{place}/{database}"
        with StoreBroker("a", url) as broker:
            _works(broker)
            assert _made(lost) > 0
            for number in range(10):
                ask_command(broker.data_dir, "vhosts.add", {"name": f"v{number}"})
            for _ in range(3):
                postgresql.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE application_name LIKE 'harebell%'"
                )
                time.sleep(1.2)
                _works(broker)
            # More than twenty connections were made since, and none of them tried it.
            assert _made(lost) == 0
            assert "does not own the store" not in broker.log


def _made(listener: socket.socket) -> int:
    """How many connections somebody has made since the last time; nobody waits for more."""
    listener.setblocking(False)
    made = 0
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            made += 1
    return made


# --- roles ---------------------------------------------------------------------------------------


def test_a_role_that_could_not_clean_the_log_is_refused(
    postgresql: PostgresServer, database: str
) -> None:
    with StoreBroker("a", postgresql.url(database)) as broker:
        _works(broker)
        assert broker.stop() == 0
    postgresql.execute("CREATE ROLE guest LOGIN PASSWORD 'p'")
    postgresql.execute(f"GRANT CREATE ON DATABASE {database} TO guest")
    postgresql.execute("GRANT ALL ON SCHEMA harebell TO guest", database)
    postgresql.execute("GRANT ALL ON ALL TABLES IN SCHEMA harebell TO guest", database)
    url = postgresql.url(database, user="guest", password="p")
    assert "a schema 'harebell' that it owns" in _refused(url)
    postgresql.execute(f"GRANT {USER} TO guest")
    with StoreBroker("b", url) as broker:
        _works(broker)


def test_settings_of_a_role_get_in_the_way_of_nothing(
    postgresql: PostgresServer, database: str
) -> None:
    postgresql.execute("CREATE ROLE set LOGIN PASSWORD 'p'")
    postgresql.execute(f"GRANT CREATE ON DATABASE {database} TO set")
    for setting in (
        *("statement_timeout = '1s'", "lock_timeout = '1s'", "idle_session_timeout = '1s'"),
        *("idle_in_transaction_session_timeout = '1s'", "search_path = nowhere"),
        *("default_transaction_isolation = serializable", "bytea_output = escape"),
        *("client_encoding = latin1", "datestyle = German", "timezone = 'Asia/Kathmandu'"),
    ):
        postgresql.execute(f"ALTER ROLE set SET {setting}")
    with StoreBroker("a", postgresql.url(database, user="set", password="p")) as broker:
        for _ in range(2):
            _works(broker)
            time.sleep(1.5)
        assert not [line for line in broker.log.splitlines() if "ostgre" in line and "warn" in line]


def test_a_server_that_is_set_to_less_while_it_runs_is_noticed() -> None:
    with PostgresServer() as server, fresh_database(server, "d"):
        server.standby("standby1")
        server.requires_standby("standby1")
        with StoreBroker("a", server.url("d"), ["--durability=replicated"]) as broker:
            _works(broker)
            # Its commits go on as they were when it was connected.
            server.set(synchronous_commit="off")
            _works(broker)
            assert "the settings of the server have changed" not in broker.log
            server.requires_standby()
            assert eventually(lambda: "the settings of the server have changed: " in broker.log)
            assert eventually(lambda: "synchronous_standby_names is empty" in broker.log)
            _works(broker)


# --- poolers -------------------------------------------------------------------------------------


def test_a_broker_works_through_a_pooler_of_sessions(
    postgresql: PostgresServer, database: str
) -> None:
    with (
        pooler(postgresql, "session") as port,
        StoreBroker("a", postgresql.url(database, port=port)) as broker,
    ):
        _works(broker, 200)
        assert broker.stop() == 0
        assert "warning] <0.0.0>" not in broker.log


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_gives_sessions_away_is_refused(
    postgresql: PostgresServer, database: str, mode: str
) -> None:
    with pooler(postgresql, mode) as port:
        said = _refused(postgresql.url(database, port=port))
    assert "set pool_mode = session for this database in PgBouncer" in said
