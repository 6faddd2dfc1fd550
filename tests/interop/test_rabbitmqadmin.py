"""RabbitMQ's script rabbitmqadmin: what it prints on Harebell is what it prints on RabbitMQ.

The script is fetched from the running RabbitMQ, as its users do. Each command runs on both brokers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pika
import pytest

from tests.interop.rabbitmq import RabbitNode
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.running import running_broker
from tests.unit.management.http.asking import Api

NAMES = ("q 1/%2F", "größe", "a\"b'c")
FORMATS = ("table", "long", "tsv", "bash", "kvp", "raw_json", "pretty_json")


class Printed(NamedTuple):
    """What a command did.

    Args:
        code: the exit code.
        out: what it printed.
        errors: what it printed about failures.
    """

    code: int
    out: str
    errors: str


class Both:
    """RabbitMQ and Harebell, each with its port of the HTTP API.

    Args:
        script: the script.
        ports: the ports of the HTTP API: RabbitMQ's and Harebell's.
        amqp: their ports for AMQP.
    """

    def __init__(self, script: Path, ports: tuple[int, int], amqp: tuple[int, int]) -> None:
        self._script = script
        self.ports = ports
        self.amqp = amqp

    def on(self, port: int, *words: str, stdin: str = "") -> Printed:
        """Run a command on one broker."""
        done = subprocess.run(
            [sys.executable, self._script, "-H", "127.0.0.1", "-P", str(port), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            # Its home has the file with defaults of the user.
            env={"HOME": str(self._script.parent), "PYTHONIOENCODING": "utf-8"},
            check=False,
        )
        return Printed(done.returncode, done.stdout, done.stderr)

    def same(self, *words: str, stdin: str = "") -> Printed:
        """Run a command on both, which have to print the same; returns it."""
        theirs, mine = (self.on(port, *words, stdin=stdin) for port in self.ports)
        assert mine == theirs, words
        return mine

    def done(self, *words: str, stdin: str = "") -> str:
        """Run a command that has to succeed on both, and print the same."""
        printed = self.same(*words, stdin=stdin)
        assert printed.code == 0, printed
        return printed.out

    def codes(self, *words: str) -> tuple[int, int]:
        """The exit codes of a command: RabbitMQ's and Harebell's."""
        theirs, mine = (self.on(port, *words) for port in self.ports)
        return theirs.code, mine.code

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """The rows of a list, which have to be the same on both in any order.

        RabbitMQ lists a new queue without its counts and policy until the next sample of them.
        """
        found: list[list[dict[str, Any]]] = []

        def same() -> bool:
            found[:] = [self._listed(port, *words) for port in self.ports]
            return found[0] == found[1]

        assert eventually(same), (words, found)
        return found[0]

    def _listed(self, port: int, *words: str) -> list[dict[str, Any]]:
        printed = self.on(port, "-f", "raw_json", *words)
        assert printed.code == 0, printed
        return sorted(json.loads(printed.out), key=lambda row: json.dumps(row, sort_keys=True))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    theirs, mine = free_port(), free_port()
    settings = [f"management.tcp.port = {theirs}", "management.tcp.ip = 127.0.0.1"]
    node = RabbitNode(settings=settings, plugins=["rabbitmq_management"])
    script = tmp_path_factory.mktemp("home") / "rabbitmqadmin"
    try:
        node.start()
        fetched = Api(theirs).ask("GET", "/cli/rabbitmqadmin")
        assert (fetched.status, fetched.body[:2]) == (200, b"#!")
        script.write_bytes(fetched.body)
        # RabbitMQ cannot import users whose passwords are hashed with scrypt.
        hashed = ("--password-hashing-module", "rabbit_password_hashing_sha256")
        with running_broker("--management-port", str(mine), *hashed) as broker:
            yield Both(script, (theirs, mine), (node.port, broker.port))
    finally:
        node.stop()


def test_everything_is_declared_and_deleted(both: Both) -> None:
    both.done("declare", "vhost", "name=v1", "tracing=true")
    both.done("declare", "user", "name=ann", "password=p", "tags=monitoring,policymaker")
    allowed = ("configure=^a", "write=.*", "read=")
    both.done("declare", "permission", "vhost=v1", "user=ann", *allowed)
    all_of_it = ("configure=.*", "write=.*", "read=.*")
    both.done("declare", "permission", "vhost=v1", "user=guest", *all_of_it)
    at = ("-V", "v1")
    both.done(*at, "declare", "exchange", "name=e1", "type=topic", "durable=false")
    both.done(*at, "declare", "exchange", "name=e2", "type=fanout", "auto_delete=true")
    both.done(*at, "declare", "queue", "name=q1", 'arguments={"x-max-length":5}')
    both.done(*at, "declare", "queue", "name=q2", "queue_type=quorum")
    both.done(*at, "declare", "binding", "source=e1", "destination=q1", "routing_key=a.#")
    exchange = ("destination=e2", "destination_type=exchange")
    both.done(*at, "declare", "binding", "source=e1", *exchange, 'arguments={"x":1}')
    settings = ("pattern=^q", 'definition={"max-length":9}', "apply-to=queues", "priority=3")
    both.done(*at, "declare", "policy", "name=p1", *settings)
    both.done(*at, "declare", "operator_policy", "name=o1", *settings)
    both.done("declare", "vhost_limit", "vhost=v1", "name=max-queues", "value=7")

    for noun, columns in {
        "vhosts": ("name", "tracing"),
        "users": ("name", "tags"),
        "permissions": ("vhost", "user", "configure", "write", "read"),
        "policies": ("vhost", "name", "pattern", "definition", "apply-to", "priority"),
        "operator_policies": ("vhost", "name", "pattern", "definition", "apply-to", "priority"),
        "vhost_limits": ("vhost", "value"),
        "nodes": ("type", "running"),
    }.items():
        assert both.rows("list", noun, *columns), noun
    for noun, columns in {
        "exchanges": ("vhost", "name", "type", "durable", "auto_delete", "internal", "arguments"),
        "queues": ("vhost", "name", "durable", "auto_delete", "arguments", "policy", "messages"),
        "bindings": ("source", "destination", "destination_type", "routing_key", "arguments"),
    }.items():
        assert both.rows(*at, "list", noun, *columns), noun

    bound = ("source=e1", "destination_type=queue", "destination=q1", "properties_key=a.%23")
    both.done(*at, "delete", "binding", *bound)
    for noun, name in (
        *(("queue", "q1"), ("queue", "q2"), ("exchange", "e2"), ("exchange", "e1")),
        *(("policy", "p1"), ("operator_policy", "o1")),
    ):
        both.done(*at, "delete", noun, f"name={name}")
        assert both.same(*at, "delete", noun, f"name={name}").code == 1, noun
    both.done("delete", "vhost_limit", "vhost=v1", "name=max-queues")
    both.done("delete", "permission", "vhost=v1", "user=ann")
    both.done("delete", "user", "name=ann")
    both.done("delete", "vhost", "name=v1")


def test_messages_are_published_got_and_purged(both: Both, tmp_path: Path) -> None:
    both.done("declare", "queue", "name=m")
    # Without any, RabbitMQ writes an empty list where Harebell writes an empty object.
    kept = 'properties={"delivery_mode":2}'
    for payload in ("one", "größe", "two\nlines"):
        both.done("publish", "routing_key=m", f"payload={payload}", kept)
    both.done("publish", "routing_key=m", kept, stdin="from standard input")
    properties = 'properties={"delivery_mode":2,"headers":{"a":[1,{"b":true}]},"priority":3}'
    both.done("publish", "routing_key=m", "payload=x", properties)
    both.done("publish", "routing_key=m", "payload=AP8=", "payload_encoding=base64", kept)
    assert "NOT routed" in both.same("publish", "routing_key=nowhere", "payload=x").out
    assert both.codes("publish", "exchange=none", "routing_key=m", "payload=x") == (1, 1)
    assert both.rows("get", "queue=m", "count=10")[0]["payload_encoding"]
    table = both.done("get", "queue=m", "count=1", "ackmode=ack_requeue_false")
    assert "one" in table
    saved = tmp_path / "payload"
    both.done("get", "queue=m", f"payload_file={saved}", "ackmode=reject_requeue_false")
    assert saved.read_text() == "größe"
    both.done("get", "queue=m", "count=10", "encoding=base64")
    assert both.done("purge", "queue", "name=m") == "queue purged\n"
    assert both.done("get", "queue=m") == "No items\n"
    both.done("delete", "queue", "name=m")


def test_every_format_is_printed_as_on_rabbitmq(both: Both) -> None:
    for name in NAMES:
        both.done("declare", "queue", f"name={name}", 'arguments={"x-expires":600000}')
    for form in FORMATS:
        shown = ("list", "queues", "name", "vhost", "durable", "arguments")
        out = [both.on(port, "-f", form, "-S", "name", *shown) for port in both.ports]
        assert out[0].code == 0, out[0]
        if form.endswith("json"):
            theirs, mine = (json.loads(each.out) for each in out)
            assert mine == theirs, form
        else:
            assert out[1] == out[0], form
    # With counts, which come later, RabbitMQ lists members that its script cannot print.
    assert both.rows("list", "queues", "name", "messages")
    for depth in ("1", "2"):
        theirs, mine = (both.on(port, "-d", depth, "list", "queues") for port in both.ports)
        assert mine.code <= theirs.code, (depth, mine, theirs)
    for name in NAMES:
        both.done("delete", "queue", f"name={name}")


def test_the_overview_has_its_columns(both: Both) -> None:
    shown = ("show", "overview", "cluster_name", "queue_totals.messages", "object_totals.queues")
    for port in both.ports:
        printed = both.on(port, *shown)
        assert printed.code == 0, printed
        head = printed.out.splitlines()[1]
        assert [each.strip() for each in head.strip("|").split("|")] == list(shown[2:])
        assert both.on(port, "show", "overview").code == 0


def test_failures_have_the_exit_code_and_the_words_of_rabbitmq(both: Both) -> None:
    both.done("declare", "queue", "name=there")
    for words in (
        ("delete", "queue", "name=none"),
        ("declare", "queue", "name=there", "durable=false"),
        ("declare", "queue", "name=amq.no"),
        ("declare", "exchange", "name=e", "type=no-such-type"),
        ("declare", "binding", "source=none", "destination=there"),
        ("-V", "none", "declare", "queue", "name=q"),
        ("-u", "guest", "-p", "wrong", "list", "queues"),
        ("get", "queue=none"),
        ("purge", "queue", "name=none"),
        ("list", "none"),
        ("close", "connection", "name=none"),
    ):
        assert both.same(*words).code == 1, words
    # What is wrong with a policy is said in other words.
    for words in (
        ("pattern=(", 'definition={"max-length":1}'),
        ("pattern=x", 'definition={"no-such-key":1}'),
        ("pattern=x", 'definition={"max-length":"many"}'),
    ):
        assert both.codes("declare", "policy", "name=p", *words) == (1, 1), words
    both.done("delete", "queue", "name=there")


def test_definitions_of_rabbitmq_are_imported_and_exported(both: Both, tmp_path: Path) -> None:
    theirs, mine = both.ports
    at = ("-V", "/")
    both.done(*at, "declare", "queue", "name=kept", 'arguments={"x-max-priority":3}')
    both.done(*at, "declare", "exchange", "name=ex", "type=headers")
    both.done(*at, "declare", "binding", "source=ex", "destination=kept", 'arguments={"a":"b"}')
    files = [tmp_path / "theirs", tmp_path / "mine"]
    for port, file in zip(both.ports, files, strict=True):
        assert both.on(port, "export", str(file)).code == 0
    for noun, name in (("queue", "kept"), ("exchange", "ex")):
        both.done("delete", noun, f"name={name}")
    # Each broker reads what the other one wrote.
    for port, file in ((theirs, files[1]), (mine, files[0])):
        printed = both.on(port, "import", str(file))
        assert printed.code == 0, printed
    columns = ("name", "durable", "auto_delete", "arguments")
    assert both.rows("list", "queues", *columns)[0]["arguments"] == {"x-max-priority": 3}
    assert both.rows("list", "bindings", "source", "destination", "arguments")
    (tmp_path / "bad").write_text("{")
    assert both.on(mine, "import", str(tmp_path / "bad")).code == 1
    for noun, name in (("queue", "kept"), ("exchange", "ex")):
        both.done("delete", noun, f"name={name}")


def test_a_connection_is_closed(both: Both) -> None:
    for port, amqp in zip(both.ports, both.amqp, strict=True):
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", amqp))

        def names(port: int = port) -> list[str]:
            found = both.on(port, "-f", "raw_json", "list", "connections", "name")
            return [each["name"] for each in json.loads(found.out)]

        assert eventually(names)
        closed = both.on(port, "close", "connection", f"name={names()[0]}")
        assert closed == Printed(0, "connection closed\n", "")
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="CONNECTION_FORCED"):
            assert eventually(lambda link=connection: link.process_data_events(0))
