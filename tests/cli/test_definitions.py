"""`harebell definitions` and `load_definitions`: files in, files out, and what is wrong in them."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from harebell.client.blocking import connect
from tests.cli.conftest import done, error_of, run, run_harebell
from tests.running import DidNotStart, RunningBroker, running_broker


def fill(broker: RunningBroker) -> None:
    done(broker, "users", "add", "ann", "secret", "--tags", "monitoring")
    done(broker, "vhosts", "add", "v", "--description", "for reports", "--durability", "os")
    done(broker, "permissions", "set", "ann", ".*", ".*", ".*", "--vhost", "v")
    done(broker, "policies", "set", "p", "^q", '{"max-length": 5}', "--vhost", "v")
    with connect(f"amqp://ann:secret@127.0.0.1:{broker.port}/v") as connection:
        channel = connection.channel()
        channel.declare_exchange("x", "topic", durable=True)
        channel.declare_queue("q", durable=True)
        channel.bind_queue("q", "x", "a.#")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_another_broker_takes_in_what_one_declared_and_keeps_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "definitions.json"
    where = ["--data-dir", str(tmp_path / "data")]
    with running_broker() as first:
        fill(first)
        assert done(first, "definitions", "export", str(path)) == (
            f"definitions were written to {path}"
        )
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        printed = done(first, "definitions", "export")
        assert printed.encode() + b"\n" == path.read_bytes()
    with running_broker(*where) as second:
        said = done(second, "definitions", "import", str(path))
        assert said == (
            "imported: 2 users, 2 vhosts, 2 permissions, 1 policies, 1 queues, 1 exchanges, "
            "1 bindings"
        )
        second.stop(number)
    with running_broker(*where) as third:
        assert done(third, "definitions", "export") == printed
        with connect(f"amqp://ann:secret@127.0.0.1:{third.port}/v") as connection:
            channel = connection.channel()
            channel.publish(b"m", exchange="x", routing_key="a.b")
            assert channel.declare_queue("q", passive=True).message_count == 1


def test_one_vhost_is_carried_to_another(tmp_path: Path) -> None:
    with running_broker() as broker:
        fill(broker)
        text = done(broker, "definitions", "export", "--vhost", "v").encode()
        done(broker, "vhosts", "add", "w")
        done(broker, "definitions", "import", "--vhost", "w", "-", stdin=text)
        assert done(broker, "definitions", "export", "--vhost", "w").encode() == text


def written(directory: Path, document: Any) -> Path:
    path = directory / "definitions.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


WRONG = [
    ("{", "are no JSON object"),
    ({"queues": [{"name": "q"}]}, "queues[0] name 'q': Object missing required field `vhost`"),
    ({"queues": [{"name": "q", "vhost": "v"}]}, "name 'q' in vhost 'v': there is no vhost 'v'"),
]


@pytest.mark.parametrize(("document", "sentence"), WRONG)
def test_a_wrong_file_is_named_and_nothing_is_imported(
    broker: RunningBroker, tmp_path: Path, document: Any, sentence: str
) -> None:
    before = done(broker, "definitions", "export")
    result = run(broker, "definitions", "import", str(written(tmp_path, document)))
    assert result.returncode == 1
    assert sentence in error_of(result)
    assert done(broker, "definitions", "export") == before


@pytest.mark.parametrize(("document", "sentence"), WRONG)
def test_a_broker_does_not_start_with_definitions_that_are_wrong(
    tmp_path: Path, document: Any, sentence: str
) -> None:
    path = written(tmp_path, document)
    with pytest.raises(DidNotStart, match="cannot be loaded") as caught:
        RunningBroker("--load-definitions", str(path))
    assert sentence in str(caught.value)
    assert caught.value.code == 1


def test_a_start_that_failed_has_changed_nothing(tmp_path: Path) -> None:
    where = ["--data-dir", str(tmp_path / "data")]
    users = [{"name": "ann", "password": "secret"}]
    path = written(tmp_path, {"users": users, "queues": [{"name": "q", "vhost": "v"}]})
    with pytest.raises(DidNotStart):
        RunningBroker(*where, "--load-definitions", str(path))
    with running_broker(*where) as broker:
        document = json.loads(done(broker, "definitions", "export"))
        assert [user["name"] for user in document["users"]] == ["guest"]


def test_what_was_loaded_is_there_after_a_kill_as_soon_as_the_broker_serves(tmp_path: Path) -> None:
    where = ["--data-dir", str(tmp_path / "data")]
    queues = [{"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}]
    path = written(tmp_path, {"vhosts": [{"name": "/"}], "queues": queues})
    with RunningBroker(*where, "--load-definitions", str(path)) as broker:
        broker.kill()
    with running_broker(*where) as broker:
        document = json.loads(done(broker, "definitions", "export"))
        assert [queue["name"] for queue in document["queues"]] == ["q"]


def test_a_broker_that_starts_with_users_makes_no_default_user(tmp_path: Path) -> None:
    users = [{"name": "ann", "password": "secret", "tags": "administrator"}]
    permissions = [{"user": "ann", "vhost": "/", "configure": "", "write": "", "read": ""}]
    path = written(tmp_path, {"users": users, "permissions": permissions})
    with running_broker("--load-definitions", str(path)) as broker:
        connect(f"amqp://ann:secret@127.0.0.1:{broker.port}/%2f").close()
        document = json.loads(done(broker, "definitions", "export"))
        assert [user["name"] for user in document["users"]] == ["ann"]


def test_files_that_cannot_be_used_are_named(broker: RunningBroker, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "file.json"
    result = run(broker, "definitions", "import", str(missing))
    assert (result.returncode, error_of(result)) == (
        2,
        f"cannot read {missing}: No such file or directory",
    )
    result = run(broker, "definitions", "export", str(missing))
    assert result.returncode == 1
    assert f"cannot write {missing}" in error_of(result)
    result = run_harebell("serve", "--load-definitions", str(missing))
    assert result.returncode == 2
    assert f"must be a file of definitions, and there is no file {missing}" in error_of(result)
