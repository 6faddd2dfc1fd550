"""rabbitmqadmin, version 1: its verbs and formats over the HTTP API of a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compat.conftest import Result, Tool
from tests.ports import free_port
from tests.running import RunningBroker, running_broker

_PORT = free_port()
Admin = Callable[..., Result]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker("--management-port", str(_PORT)) as started:
        yield started


@pytest.fixture
def admin(tool: Tool) -> Admin:
    """Runs rabbitmqadmin against the broker."""

    def run(*words: str, stdin: str = "") -> Result:
        return tool("rabbitmqadmin", "-P", str(_PORT), *words, stdin=stdin)

    return run


def done(result: Result) -> str:
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_declarations_of_testcontainers_are_made(admin: Admin) -> None:
    assert done(admin("declare", "vhost", "name=tc")) == "vhost declared\n"
    done(admin("declare", "permission", "vhost=tc", "user=guest", *_ALL))
    done(admin("-V", "tc", "declare", "exchange", "name=e", "type=direct"))
    arguments = 'arguments={"x-max-length":5}'
    done(admin("-V", "tc", "declare", "queue", "name=q", "durable=true", arguments))
    shown = admin(
        *("-V", "tc", "declare", "binding", "source=e", "destination=q"),
        *("routing_key=k", "destination_type=queue"),
    )
    assert done(shown) == "binding declared\n"
    done(admin("declare", "user", "name=u", "password=p", "tags=monitoring"))
    policy = ("name=p", "pattern=^q", 'definition={"max-length":9}', "apply-to=queues")
    done(admin("-V", "tc", "declare", "policy", *policy))
    rows = json.loads(done(admin("-V", "tc", "-f", "raw_json", "list", "bindings")))
    assert ("e", "q", "k") in {(r["source"], r["destination"], r["routing_key"]) for r in rows}
    done(admin("delete", "user", "name=u"))
    assert done(admin("delete", "vhost", "name=tc")) == "vhost deleted\n"


_ALL = ("configure=.*", "write=.*", "read=.*")


def test_formats_are_those_of_version_1(admin: Admin) -> None:
    done(admin("declare", "queue", "name=a/b"))
    table = done(admin("list", "queues", "name", "messages"))
    assert table == (
        "+------+----------+\n"
        "| name | messages |\n"
        "+------+----------+\n"
        "| a/b  | 0        |\n"
        "+------+----------+\n"
    )
    assert done(admin("-f", "tsv", "list", "queues", "name", "messages")) == (
        "name\tmessages\na/b\t0\n"
    )
    assert done(admin("-q", "-f", "bash", "list", "queues")) == "a/b\n"
    assert done(admin("-f", "kvp", "list", "queues", "name")) == 'name="a/b"\n'
    done(admin("delete", "queue", "name=a/b"))
    assert done(admin("list", "queues")) == "No items\n"


def test_messages_are_published_got_and_purged(admin: Admin, tmp_path: Path) -> None:
    done(admin("declare", "queue", "name=m"))
    sent = admin("publish", "exchange=amq.default", "routing_key=m", "payload=hello")
    assert done(sent) == "Message published\n"
    lost = admin("publish", "routing_key=none", "payload=x")
    assert done(lost) == "Message published but NOT routed\n"
    assert "hello" in done(admin("get", "queue=m"))
    file = tmp_path / "body"
    done(admin("get", "queue=m", f"payload_file={file}", "ackmode=ack_requeue_false"))
    assert file.read_text() == "hello"
    assert done(admin("purge", "queue", "name=m")) == "queue purged\n"
    done(admin("delete", "queue", "name=m"))


def test_errors_have_exit_code_1_and_the_reason(admin: Admin) -> None:
    for words, text in (
        (["list", "nosuch"], "Don't know how to list nosuch"),
        (["declare", "queue"], 'mandatory argument "name" is required'),
        (["delete", "queue", "name=none"], "*** Not found: /api/queues/%2F/none"),
        (["-u", "bad", "-p", "secret", "list", "queues"], "*** Access refused: /api/queues"),
        (["nosuch"], "Action nosuch not understood"),
    ):
        result = admin(*words)
        assert result.returncode == 1, words
        assert text in result.stderr
        assert "secret" not in result.stderr


def test_definitions_and_a_configuration_file_are_used(admin: Admin, tmp_path: Path) -> None:
    config = tmp_path / "admin.conf"
    config.write_text(f"[here]\nhostname = 127.0.0.1\nport = {_PORT}\n")
    file = tmp_path / "definitions.json"
    done(admin("-c", str(config), "-N", "here", "export", str(file)))
    assert json.loads(file.read_text())["users"]
    done(admin("import", str(file)))
    assert "rabbitmq_version" in done(admin("show", "overview"))
