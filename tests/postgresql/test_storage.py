"""A broker over PostgreSQL keeps what it confirmed, and says in a sentence what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from harebell.client import blocking
from harebell.cluster.postgresql.standby import EVIDENCE
from harebell.management.control.client import ask_command
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.postgresql.brokers import LEASE_MS, SMALL_GENERATIONS, StoreBroker, owner_of
from tests.postgresql.history import History
from tests.postgresql.servers import SUPERUSER, USER, PostgresServer, fresh_database
from tests.relay import relay
from tests.robustness.test_disk_full import Watcher
from tests.running import command, environment

_ENDS_SECONDS = SECONDS
_SOON_SLOW = "from harebell.server import limits\nlimits.SLOW_COMMIT_SECONDS = 1.0"


@pytest.fixture(scope="module")
def replicated() -> Iterator[PostgresServer]:
    """A primary that waits for its standby."""
    with PostgresServer() as primary:
        primary.standby("standby1")
        primary.requires_standby("standby1")
        yield primary


def _administer(broker: StoreBroker, *arguments: str) -> str:
    done = subprocess.run(
        [command(), *arguments],
        capture_output=True,
        text=True,
        env=environment({"HAREBELL_DATA_DIR": str(broker.data_dir)}),
        timeout=_ENDS_SECONDS,
        check=True,
    )
    return done.stdout


def _url(broker: StoreBroker, user: str = "guest", password: str = "guest") -> str:
    return f"amqp://{user}:{password}@127.0.0.1:{broker.port}/%2F"


# --- what is kept --------------------------------------------------------------------------------


def test_everything_is_there_again_after_the_loss_of_the_machine(
    postgresql: PostgresServer, database: str
) -> None:
    with StoreBroker("a", postgresql.url(database)) as broker:
        broker.wait_until_it_serves()
        _administer(broker, "users", "add", "ann", "secret")
        _administer(broker, "permissions", "set", "ann", ".*", ".*", ".*")
        with blocking.connect(_url(broker)) as connection:
            channel = connection.channel()
            for name, kind in (("q", "classic"), ("s", "stream"), ("leased", "classic")):
                channel.declare_queue(name, durable=True, arguments={"x-queue-type": kind})
            channel.declare_exchange("x", "topic", durable=True)
            channel.bind_queue("q", "x", "a.*")
            for number in range(10):
                body = b"%d" % number
                channel.publish(body, exchange="x", routing_key="a.b", delivery_mode=2)
                channel.publish(body, routing_key="s", delivery_mode=2)
                channel.publish(body, routing_key="leased", delivery_mode=2)
            lease = channel.lease_open("leased", "g")
            claim = channel.lease_claim("leased", "g", lease.epoch, 4)
            assert channel.lease_claim("leased", "g", lease.epoch, 3).messages == 3
            assert channel.lease_commit("leased", "g", lease.epoch, 1) == claim.messages
            with connection.channel().transaction() as transacted:
                for _ in range(3):
                    message = transacted.get("q")
                    assert message is not None
                    message.ack()
                transacted.publish(b"moved", routing_key="q", delivery_mode=2)
        broker.forget()
        broker.start()
        broker.wait_until_it_serves()
        with blocking.connect(_url(broker, "ann", "secret")) as connection:
            channel = connection.channel()
            found = channel.lease_open("leased", "g")
            assert (found.epoch, found.committed, found.last) == (2, 1, 2)
            bodies = []
            while (message := channel.get("q", no_ack=True)) is not None:
                bodies.append(message.body)
            assert bodies == [b"%d" % number for number in range(3, 10)] + [b"moved"]
            assert channel.declare_queue("s", passive=True).message_count == 10
            channel.publish(b"again", exchange="x", routing_key="a.c", delivery_mode=2)
            last = channel.get("q", no_ack=True)
            assert last is not None
            assert last.body == b"again"
        assert broker.stop() == 0
        assert "Traceback" not in broker.log


def test_nothing_is_lost_when_the_answer_to_a_commit_is(
    postgresql: PostgresServer, database: str
) -> None:
    marker = b"the answer to this one is lost"
    with relay(postgresql.port) as between:
        url = postgresql.url(database, port=between.port)
        with StoreBroker("a", url) as broker:
            broker.wait_until_it_serves()
            with blocking.connect(_url(broker)) as connection:
                channel = connection.channel()
                channel.declare_queue("q", durable=True)
                for number in range(5):
                    made = between.made
                    body = marker + b"%d" % number
                    between.cut_at = body
                    channel.publish(body, routing_key="q", delivery_mode=2)
                    assert not between.cut_at, "the commit went another way"
                    assert between.made > made, "the broker kept a connection that was cut"
            broker.forget()
            broker.start()
            broker.wait_until_it_serves()
            with blocking.connect(_url(broker)) as connection:
                channel = connection.channel()
                found = [channel.get("q", no_ack=True) for _ in range(6)]
                bodies = [each.body for each in found if each is not None]
                assert bodies == [marker + b"%d" % number for number in range(5)]


def test_a_restart_of_the_database_only_delays_confirms() -> None:
    with PostgresServer() as server, fresh_database(server, "d"):
        history = History(3)
        with StoreBroker("a", server.url("d"), lease_ms=60_000) as broker:
            broker.wait_until_it_serves()
            history.load.declare(broker.port)
            now = time.monotonic()
            meanwhile = [(now + 0.3, server.restart), (now + 1.5, server.kill)]
            went = history.load.run(
                broker.port, now + 4, meanwhile=[*meanwhile, (now + 2.0, server.start)]
            )
            assert not went, broker.log
            history.drain(broker.port)
            assert broker.stop() == 0


def test_connections_that_the_database_ends_while_they_are_idle_only_delay_confirms(
    postgresql: PostgresServer, database: str
) -> None:
    ours = "pg_stat_activity WHERE application_name LIKE 'harebell%'"
    with StoreBroker("a", postgresql.url(database)) as broker:
        broker.wait_until_it_serves()
        with blocking.connect(_url(broker), call_timeout=SECONDS) as connection:
            channel = connection.channel()
            channel.declare_queue("q", durable=True)
            for number in range(5):
                for _ in range(3):
                    channel.publish(b"%d" % number, routing_key="q", delivery_mode=2)
                # Those that were ended the last time are there again when they are needed.
                assert eventually(lambda: postgresql.execute(f"SELECT pid FROM {ours}")[1:])
                ended = postgresql.execute(f"SELECT pg_terminate_backend(pid, 10000) FROM {ours}")
                assert ended
                # Until the event loop has seen it.
                time.sleep(0.1)
            assert channel.declare_queue("q", passive=True).message_count == 15


@pytest.mark.soak
def test_a_slow_way_to_the_database_keeps_the_lease(
    postgresql: PostgresServer, database: str
) -> None:
    with relay(postgresql.port) as between:
        url = postgresql.url(database, port=between.port)
        with StoreBroker("a", url, lease_ms=10_000) as broker:
            broker.wait_until_it_serves()
            # Until the statements are prepared, which takes a round trip for each of them.
            time.sleep(12.5)
            # A renewal takes a good part of the lease, and what follows it more.
            between.late = 1.5
            time.sleep(20.0)
            assert "does not own the store" not in broker.log
            between.late = 0.0
            assert broker.stop() == 0


def test_a_commit_that_hangs_holds_up_confirms_alone(
    postgresql: PostgresServer, database: str
) -> None:
    port = free_port()
    flags = [f"--management-port={port}"]
    url = postgresql.url(database)
    with StoreBroker("a", url, flags, planted=_SOON_SLOW) as broker:
        broker.wait_until_it_serves()
        login = {"Authorization": "Basic " + b64encode(b"guest:guest").decode()}
        with blocking.connect(_url(broker)) as one, blocking.connect(_url(broker)) as other:
            channel, quick = one.channel(), other.channel()
            channel.declare_queue("q", durable=True)
            quick.declare_queue("t", exclusive=True, durable=False)
            channel.publish(b"first", routing_key="q", delivery_mode=2)
            with postgresql.hanging("INSERT INTO %log_0000000001%"):
                confirm = channel.publish_nowait(b"second", routing_key="q", delivery_mode=2)
                one.flush()
                until = time.monotonic() + 1.2 * LEASE_MS / 1_000
                # Longer than the lease, which is renewed over another connection.
                while time.monotonic() < until:
                    quick.publish(b"x", routing_key="t")
                    assert quick.get("t", no_ack=True) is not None
                    for path in ("overview", "queues"):
                        asked = Request(f"http://127.0.0.1:{port}/api/{path}", headers=login)
                        with urlopen(asked, timeout=SECONDS) as answer:
                            assert answer.status == 200
                    assert ask_command(broker.data_dir, "queues.list", {})
                assert "the commit has ended after" not in broker.log
                assert eventually(lambda: "has not ended a commit for 1 seconds" in broker.log)
            confirm.wait()
            assert eventually(lambda: "the commit has ended after" in broker.log)
            assert channel.declare_queue("q", passive=True).message_count == 2
        assert "does not own the store" not in broker.log


def test_a_statement_timeout_and_many_connections_of_others_lose_nothing(
    postgresql: PostgresServer, database: str
) -> None:
    name = "impatient"
    postgresql.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'p'")
    postgresql.execute(f"GRANT CREATE ON DATABASE {database} TO {name}")
    for setting in ("statement_timeout = '1ms'", "lock_timeout = '1ms'"):
        postgresql.execute(f"ALTER ROLE {name} SET {setting}")
    history = History(4)
    url = postgresql.url(database, user=name, password="p")
    with StoreBroker("a", url) as broker:
        broker.wait_until_it_serves()
        history.load.declare(broker.port)
        assert not history.load.run(broker.port, time.monotonic() + 0.5)
        # Its connections stay; new ones are refused.
        postgresql.execute(f"ALTER ROLE {name} CONNECTION LIMIT 0")
        assert not history.load.run(broker.port, time.monotonic() + 0.5)
        broker.kill()
        broker.start()
        assert eventually(lambda: "too many connections for role" in broker.log)
        assert broker.running
        postgresql.execute(f"ALTER ROLE {name} CONNECTION LIMIT -1")
        broker.wait_until_it_serves()
        history.drain(broker.port)


def test_names_of_vhosts_may_have_any_character(postgresql: PostgresServer, database: str) -> None:
    names = ["nul\0", "back\\slash", "\\0", "\\\0", "日本", "quote\"'"]
    with _database_in(postgresql, "SQL_ASCII") as name:
        for url in (postgresql.url(database), postgresql.url(name)):
            with StoreBroker("a", url) as broker:
                broker.wait_until_it_serves()
                for each in names:
                    ask_command(broker.data_dir, "vhosts.add", {"name": each})
                assert broker.stop() == 0
                broker.start()
                broker.wait_until_it_serves()
                rows = ask_command(broker.data_dir, "vhosts.list", {})
                assert sorted(row["name"] for row in rows) == sorted(["/", *names])
                assert "do not know vhost" not in broker.log


def test_a_backup_of_a_store_in_postgresql_is_refused_with_what_to_do(
    postgresql: PostgresServer, database: str, tmp_path: Path
) -> None:
    said = (
        "this broker keeps everything in PostgreSQL: back the database up by its own means, such "
        "as base backups with archived WAL, or pg_dump; docs/guides/postgresql.md says how"
    )
    target = tmp_path / "target"
    flags = ["--backup-target", str(target)]
    with StoreBroker("a", postgresql.url(database), flags) as broker:
        broker.wait_until_it_serves()
        words = [command(), "backup", str(target), "--data-dir", str(broker.data_dir)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=_ENDS_SECONDS)
        assert (done.returncode, done.stdout) == (1, "")
        assert said in done.stderr
        assert ask_command(broker.data_dir, "backups.list", {}) == []
        # That of the configuration says it too, and once an hour, not with every tick.
        assert eventually(lambda: said in broker.log)
        assert broker.log.count(said) == 1
        assert not target.exists()


def test_a_vhost_that_is_made_while_no_connection_is_left_is_written_down_later(
    postgresql: PostgresServer, database: str
) -> None:
    postgresql.execute("CREATE ROLE full_up LOGIN PASSWORD 'p'")
    postgresql.execute(f"GRANT CREATE ON DATABASE {database} TO full_up")
    known = "SELECT 1 FROM harebell.vhost WHERE name = 'v'"
    with StoreBroker("a", postgresql.url(database, user="full_up", password="p")) as broker:
        broker.wait_until_it_serves()
        postgresql.execute("ALTER ROLE full_up CONNECTION LIMIT 0")
        ask_command(broker.data_dir, "vhosts.add", {"name": "v"})
        assert eventually(lambda: "do not know vhost 'v' yet" in broker.log)
        assert not postgresql.execute(known, database)
        postgresql.execute("ALTER ROLE full_up CONNECTION LIMIT -1")
        assert eventually(lambda: postgresql.execute(known, database))
        assert broker.log.count("do not know vhost 'v'") == 1


def test_a_store_can_be_opened_after_its_first_generation_was_removed(
    postgresql: PostgresServer, database: str
) -> None:
    with StoreBroker("a", postgresql.url(database), planted=SMALL_GENERATIONS) as broker:
        # Each life ends with a note in the definitions, and the next one begins with their image:
        # both are in one generation, and the image before them in one that goes.
        for _ in range(4):
            broker.wait_until_it_serves()
            with blocking.connect(_url(broker)) as connection:
                channel = connection.channel()
                channel.declare_queue("q", durable=True)
                for _ in range(4):
                    channel.declare_queue("old", durable=True)
                    for _ in range(10):
                        channel.publish(os.urandom(10_000), routing_key="old", delivery_mode=2)
                    channel.delete_queue("old")
            assert broker.stop() == 0
            broker.start()
        broker.wait_until_it_serves()
        assert "q" in _administer(broker, "queues", "list")
        schema = postgresql.execute(
            "SELECT min(tablename) FROM pg_tables WHERE tablename ~ '^log_'", database
        )
        assert str(schema[0][0]) > "log_0000000001"


@contextmanager
def _database_in(server: PostgresServer, encoding: str) -> Iterator[str]:
    """A database with an encoding other than that of the server; its name."""
    name = f"in_{encoding.lower()}"
    server.execute(
        f"CREATE DATABASE {name} OWNER {USER} ENCODING '{encoding}' TEMPLATE template0"
        " LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    try:
        yield name
    finally:
        server.drop_database(name)


@contextmanager
def _small_space(octets: int) -> Iterator[tuple[PostgresServer, Path]]:
    """A server with a tablespace `small` in a tmpfs of its own, and where the test finds that."""
    with tempfile.TemporaryDirectory(prefix="hb-small-", dir="/dev/shm") as mounted:
        user = SUPERUSER if os.geteuid() == 0 else str(os.getuid())
        mount = f"mount -t tmpfs -o size={octets},mode=0700,uid={user} none {mounted}"
        sleeper = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", f"{mount} && echo mounted && exec sleep infinity"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert sleeper.stdout is not None
            assert sleeper.stdout.readline() == "mounted\n", "nothing can be mounted here"
            Path(mounted).chmod(0o755)
            with PostgresServer(prefix=["nsenter", "-t", str(sleeper.pid), "-m"]) as server:
                server.execute(f"CREATE TABLESPACE small LOCATION '{mounted}'")
                server.execute(f"CREATE DATABASE d OWNER {USER} TABLESPACE small")
                yield server, Path(f"/proc/{sleeper.pid}/root{mounted}")
        finally:
            sleeper.kill()
            sleeper.wait()


def test_a_full_disk_of_the_database_only_delays_confirms() -> None:
    with _small_space(64 * 1_048_576) as (server, space):
        history = History(7)
        with StoreBroker("a", server.url("d"), lease_ms=60_000) as broker:
            broker.wait_until_it_serves()
            history.load.declare(broker.port)
            ballast = space / "ballast"
            room_at = 0.0

            def fill() -> None:
                with ballast.open("wb", buffering=0) as file, suppress(OSError):
                    while True:
                        file.write(bytes(4096))

            def have_gone_on() -> bool:
                """Whether clients, which wait, go on since there was room again."""
                nonlocal room_at
                if not room_at and "No space left on device" in broker.log:
                    ballast.unlink()
                    room_at = time.monotonic()
                return bool(room_at) and time.monotonic() > room_at + 2.0

            now = time.monotonic()
            assert not history.load.run(
                broker.port, now + SECONDS, meanwhile=[(now + 0.5, fill)], until=have_gone_on
            )
            assert room_at
            assert "Traceback" not in broker.log
            history.drain(broker.port)
            assert broker.stop() == 0


def test_publishers_are_blocked_while_the_database_is_full() -> None:
    with (
        _small_space(64 * 1_048_576) as (server, space),
        StoreBroker("a", server.url("d"), lease_ms=60_000) as broker,
    ):
        broker.wait_until_it_serves()
        with blocking.connect(_url(broker)) as connection:
            connection.channel().declare_queue("q", durable=True)
        watcher = Watcher(broker.port, "q")
        with (space / "ballast").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        watcher.publish_until_blocked()
        assert watcher.blocked == "low on disk"
        (space / "ballast").unlink()
        watcher.wait_until_free()
        assert broker.stop() == 0


# --- wrong settings ------------------------------------------------------------------------------


def _refused(url: str, *flags: str) -> str:
    """What a broker says that does not start; one sentence."""
    with StoreBroker("a", url, flags) as broker:
        code = broker.ended(_ENDS_SECONDS)
        assert code not in (0, -9), broker.log
        assert "Traceback" not in broker.log
        errors = [line for line in broker.log.splitlines() if line.startswith("Error:")]
    assert len(errors) == 1, errors
    return errors[0]


def test_a_wrong_password_is_said(postgresql: PostgresServer, database: str) -> None:
    said = _refused(postgresql.url(database, password="wrong"))
    assert "password authentication failed for user" in said
    assert "wrong" not in said


@pytest.mark.parametrize("url", ["postgresql://a:pw%zz@b/c", "postgresql://a:pwzz@[::1/c"])
def test_a_url_that_cannot_be_read_is_said_without_its_password(url: str) -> None:
    said = _refused(url)
    assert "storage is no URL of PostgreSQL: " in said
    assert "zz" not in said


def test_a_database_that_does_not_exist_is_said(postgresql: PostgresServer) -> None:
    assert 'database "nowhere" does not exist' in _refused(postgresql.url("nowhere"))


def test_missing_rights_are_said_with_what_to_grant(
    postgresql: PostgresServer, database: str
) -> None:
    postgresql.execute("CREATE ROLE poor LOGIN PASSWORD 'p'")
    said = _refused(postgresql.url(database, user="poor", password="p"))
    assert "permission denied" in said
    assert "CREATE on the database" in said


@pytest.mark.parametrize(
    ("role_setting", "flags", "sentence"),
    [
        ("synchronous_commit = off", (), "synchronous_commit is off"),
        ("synchronous_commit = local", ("--durability=replicated",), "'local'"),
        ("synchronous_commit = remote_write", ("--durability=replicated",), "'remote_write'"),
    ],
)
def test_a_commit_that_is_worth_less_is_said(
    replicated: PostgresServer, role_setting: str, flags: tuple[str, ...], sentence: str
) -> None:
    with fresh_database(replicated, "d"):
        replicated.execute(f"ALTER ROLE {USER} SET {role_setting}")
        try:
            assert sentence in _refused(replicated.url("d"), *flags)
        finally:
            replicated.execute(f"ALTER ROLE {USER} RESET ALL")


def test_a_replicated_store_without_a_synchronous_standby_is_said(
    postgresql: PostgresServer, database: str
) -> None:
    said = _refused(postgresql.url(database), "--durability=replicated")
    assert "synchronous_standby_names is empty" in said


def test_a_database_whose_encoding_lacks_characters_is_said(postgresql: PostgresServer) -> None:
    with _database_in(postgresql, "LATIN1") as name:
        said = _refused(postgresql.url(name))
    assert "encoding LATIN1" in said
    assert "ENCODING 'UTF8'" in said


def test_a_server_without_fsync_is_said() -> None:
    with PostgresServer(settings={"fsync": "off"}) as server, fresh_database(server, "d"):
        assert "fsync = on" in _refused(server.url("d"))


def test_an_old_server_is_said(postgresql: PostgresServer, database: str) -> None:
    version = str(postgresql.execute("SHOW server_version")[0][0]).encode()
    with relay(postgresql.port) as between:
        # As long as before, for the message has its length in front.
        between.instead = (b"server_version\0" + version, b"server_version\0" + b"13" + version[2:])
        said = _refused(postgresql.url(database, port=between.port))
    assert f"13{version[2:].decode()}, and Harebell needs 14 or newer" in said


def test_a_broker_says_what_its_confirms_are_worth(
    replicated: PostgresServer, postgresql: PostgresServer, database: str
) -> None:
    with StoreBroker("a", postgresql.url(database)) as broker:
        broker.wait_until_it_serves()
        alone = "a confirm means committed and synced on this server alone"
        assert eventually(lambda: alone in broker.log), broker.log
    flags = ["--durability=replicated"]
    with fresh_database(replicated, "d"), StoreBroker("a", replicated.url("d"), flags) as broker:
        broker.wait_until_it_serves()
        standbys = "committed on this server and on its standbys"
        assert eventually(lambda: standbys in broker.log), broker.log


def test_two_stores_of_one_database_do_not_meet(postgresql: PostgresServer, database: str) -> None:
    url = postgresql.url(database)
    with StoreBroker("a", url) as one, StoreBroker("b", url, ["--storage-schema=other"]) as other:
        one.wait_until_it_serves()
        other.wait_until_it_serves()
        with blocking.connect(_url(one)) as connection:
            connection.channel().declare_queue("q", durable=True)
        assert "q" in _administer(one, "queues", "list")
        assert "q" not in _administer(other, "queues", "list").split()


def test_a_planned_stop_hands_over_at_once(postgresql: PostgresServer, database: str) -> None:
    url = postgresql.url(database)
    # Longer than anything is waited for.
    with StoreBroker("a", url, lease_ms=300_000) as one:
        one.wait_until_it_serves()
        with StoreBroker("b", url, lease_ms=300_000) as other:
            assert eventually(lambda: "standing by" in other.log)
            assert one.stop() == 0
            assert owner_of([other]) is other
            one.start()
            assert eventually(lambda: one.log.count("b@localhost owns the store"))
            # It has nothing to end.
            assert one.stop() in (0, -signal.SIGTERM)


def _doctor(url: str, *flags: str) -> dict[str, str]:
    """What the doctor finds about the storage."""
    with tempfile.TemporaryDirectory(prefix="hb-doctor-") as home:
        done = subprocess.run(
            [command(), "doctor", "--json", f"--data-dir={home}"],
            capture_output=True,
            env=environment({"HAREBELL_STORAGE": url, **dict(each.split("=") for each in flags)}),
            timeout=_ENDS_SECONDS,
            check=False,
        )
    found = json.loads(done.stdout)["findings"]
    return {each["state"]: each["text"] for each in found if each["name"] == "storage"}


def test_the_doctor_says_what_confirms_are_worth_or_what_is_wrong(
    postgresql: PostgresServer, database: str
) -> None:
    url = postgresql.url(database)
    assert "a confirm means committed and synced on this server alone" in _doctor(url)["ok"]
    assert "harebell" not in [
        name for (name,) in postgresql.execute("SELECT nspname FROM pg_namespace", database)
    ]
    said = _doctor(url, "HAREBELL_DURABILITY=replicated")["bad"]
    assert "synchronous_standby_names is empty" in said
    assert "is always durable" in _doctor(url, "HAREBELL_DURABILITY=os")["bad"]
    said = _doctor(postgresql.url(database, password="wrong"))["bad"]
    assert "password authentication failed" in said
    assert "wrong" not in said
    postgresql.execute("CREATE ROLE meagre LOGIN PASSWORD 'p'")
    said = _doctor(postgresql.url(database, user="meagre", password="p"))["bad"]
    assert "the role needs CREATE on the database, or a schema 'harebell' that it owns" in said
    with StoreBroker("a", url) as broker:
        broker.wait_until_it_serves()
        assert "a confirm means committed" in _doctor(url)["ok"]
        assert (
            "needs CREATE" in _doctor(postgresql.url(database, user="meagre", password="p"))["bad"]
        )


def test_a_broker_that_finds_a_row_of_nobody_goes_on_and_keeps_it(
    postgresql: PostgresServer, database: str
) -> None:
    log = "harebell.log_0000000001"
    with StoreBroker("a", postgresql.url(database)) as broker:
        broker.wait_until_it_serves()
        with blocking.connect(_url(broker)) as connection:
            postgresql.execute(
                f"INSERT INTO {log} SELECT max(number) + 1, 99, 'x' FROM {log}", database
            )
            with suppress(Exception):
                # It loses the store when it meets the row, and claims it again.
                connection.channel().declare_queue("q", durable=True)
        assert eventually(lambda: broker.has_logged("of the log is damaged"))
        broker.wait_until_it_serves()
        with blocking.connect(_url(broker)) as connection:
            connection.channel().declare_queue("q", durable=True)
        [kept] = (broker.data_dir / EVIDENCE).iterdir()
        assert kept.read_bytes() == b"x"
        broker.stop()


def test_the_password_of_the_database_is_in_no_log(
    postgresql: PostgresServer, database: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with StoreBroker("a", postgresql.url(database), [f"--log-file={log}"]) as broker:
        broker.wait_until_it_serves()
        shown = broker.log + _administer(broker, "status", "--json")
        assert broker.stop() == 0
    assert "correct" not in shown + log.read_text()
