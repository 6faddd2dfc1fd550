"""A broker that is suspended, stopped, reset and changed while its process runs."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pika
import pytest
from pika.exceptions import AMQPError

from tests.patience import SECONDS
from tests.ports import free_port
from tests.running import RunningBroker, asked, running_broker


@pytest.fixture
def metrics_port() -> int:
    return free_port()


@pytest.fixture
def broker(metrics_port: int) -> Iterator[RunningBroker]:
    # A port of its own: nobody else gets it while the broker does not listen there.
    ports = ("--port", str(free_port()), "--metrics-port", str(metrics_port))
    with running_broker(*ports) as running:
        yield running


def done(broker: RunningBroker, *words: str) -> str:
    result = asked(broker, *words)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.strip()


def connected(broker: RunningBroker) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(broker.address()))


def takes_connections(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_suspended_listeners_leave_connections_and_come_back_at_their_port(
    broker: RunningBroker, metrics_port: int
) -> None:
    with connected(broker) as connection:
        channel = connection.channel()
        done(broker, "listeners", "suspend")
        assert not takes_connections(broker.port)
        channel.queue_declare("still-served")
        unhealthy = asked(broker, "health")
        assert unhealthy.returncode == 1
        assert "listeners are suspended" in unhealthy.stderr
        assert "suspended" in done(broker, "status")
        done(broker, "listeners", "resume")
    with connected(broker) as connection:
        connection.channel().queue_declare("still-served", passive=True)
    assert done(broker, "health").startswith("healthy")


def test_listeners_whose_port_was_taken_meanwhile_stay_closed_with_the_reason(
    broker: RunningBroker,
) -> None:
    done(broker, "listeners", "suspend")
    with socket.create_server(("127.0.0.1", broker.port)):
        refused = asked(broker, "listeners", "resume")
    assert refused.returncode == 1
    assert f":{broker.port} is in use already" in refused.stderr
    done(broker, "listeners", "resume")
    assert takes_connections(broker.port)


def test_a_stopped_broker_closes_its_connections_and_keeps_what_is_stored(
    broker: RunningBroker, metrics_port: int
) -> None:
    connection = connected(broker)
    channel = connection.channel()
    channel.queue_declare("kept", durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", "kept", b"body", pika.BasicProperties(delivery_mode=2))
    done(broker, "app", "stop")
    with pytest.raises(AMQPError):
        connection.process_data_events(SECONDS)
    assert not takes_connections(broker.port)
    with urlopen(f"http://127.0.0.1:{metrics_port}/health/live") as answer:
        assert answer.status == 200
    with pytest.raises(HTTPError, match="503"):
        urlopen(f"http://127.0.0.1:{metrics_port}/health/ready")
    done(broker, "app", "stop")
    done(broker, "app", "start")
    with connected(broker) as connection:
        _, _, body = connection.channel().basic_get("kept", auto_ack=True)
        assert body == b"body"


def test_a_reset_removes_everything_but_the_process_and_its_ports(broker: RunningBroker) -> None:
    done(broker, "vhosts", "add", "orders")
    with connected(broker) as connection:
        connection.channel().queue_declare("gone", durable=True)
    refused = asked(broker, "app", "reset")
    assert refused.returncode == 1
    assert "stop it with `harebell app stop` first" in refused.stderr
    pid = json.loads(done(broker, "status", "--json"))["pid"]
    done(broker, "app", "stop")
    done(broker, "app", "reset")
    assert not takes_connections(broker.port)
    done(broker, "app", "start")
    assert json.loads(done(broker, "status", "--json"))["pid"] == pid
    with connected(broker) as connection, pytest.raises(AMQPError):
        connection.channel().queue_declare("gone", passive=True)
    assert [row["name"] for row in json.loads(done(broker, "vhosts", "list", "--json"))] == ["/"]
    with connected(broker) as connection:
        connection.channel().queue_declare("again", durable=True)
    assert broker.stop() == 0


def test_a_broker_that_is_killed_after_a_reset_starts_empty(tmp_path: Path) -> None:
    data_dir = str(tmp_path / "data")
    with running_broker("--data-dir", data_dir) as running:
        with connected(running) as connection:
            connection.channel().queue_declare("gone", durable=True)
        done(running, "app", "stop")
        done(running, "app", "reset")
        os.kill(running.pid, signal.SIGKILL)
        running.process.wait()
    with running_broker("--data-dir", data_dir) as running:
        assert json.loads(done(running, "queues", "list", "--json")) == []


def test_a_key_is_set_until_it_is_unset(broker: RunningBroker) -> None:
    assert done(broker, "config", "set", "log_level", "debug").startswith("log_level is debug")
    done(broker, "config", "set", "memory_high_watermark", "1MB")
    status = json.loads(done(broker, "status", "--json"))
    assert status["memory_high_watermark_bytes"] == 1_000_000
    done(broker, "config", "unset", "memory_high_watermark")
    status = json.loads(done(broker, "status", "--json"))
    assert status["memory_high_watermark_bytes"] > 1_000_000
    assert "1 key changed: log_level" in done(broker, "config", "reload")


@pytest.mark.parametrize(
    ("key", "value", "code", "reason"),
    [
        ("log_levle", "debug", 2, "did you mean 'log_level'"),
        ("foo", "1", 2, "there is no key 'foo': it is none of the"),
        ("port", "5672", 1, "keeps its value until a restart"),
        ("tls_key_password", "x", 1, "is a secret"),
        ("log_level", "loud", 2, "must be one of debug, info"),
    ],
)
def test_a_key_that_cannot_be_set_is_refused_with_the_reason(
    broker: RunningBroker, key: str, value: str, code: int, reason: str
) -> None:
    refused = asked(broker, "config", "set", key, value)
    assert refused.returncode == code
    assert reason in refused.stderr
    assert len(refused.stderr) < 400


def test_an_import_checks_passwords_as_a_new_user_does_and_takes_hashes_as_they_are(
    tmp_path: Path,
) -> None:
    conf, file = tmp_path / "rabbitmq.conf", tmp_path / "definitions.json"
    conf.write_text(
        "credential_validator.validation_backend = "
        "rabbit_credential_validator_min_password_length\n"
        "credential_validator.min_length = 4\n"
    )
    hashed = {"name": "hashed", "password_hash": _HASH, "tags": ""}
    with running_broker("--config", str(conf)) as broker:
        for number, password in enumerate(("x", "long-enough")):
            plain = {"name": "plain", "password": password, "tags": ""}
            file.write_text(json.dumps({"users": [hashed, plain]}))
            result = asked(broker, "definitions", "import", str(file))
            assert result.returncode == (0 if number else 1)
            if not number:
                assert "users: name 'plain': password length should be at least 4" in result.stderr
            users = {row["name"] for row in json.loads(done(broker, "users", "list", "--json"))}
            assert users == ({"guest", "hashed", "plain"} if number else {"guest"})


_HASH = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"


def test_a_reload_changes_what_it_can_and_names_what_needs_a_restart(tmp_path: Path) -> None:
    conf, api, metrics = tmp_path / "rabbitmq.conf", free_port(), free_port()
    fixed = "channel_max = 100\n"
    conf.write_text(fixed)
    flags = ("--config", str(conf), "--management-port", str(api), "--metrics-port", str(metrics))
    page = f"http://127.0.0.1:{api}/api/overview"

    def headers() -> dict[str, str]:
        """The headers of an answer, but for its time."""
        request = Request(page, headers={"origin": "https://ops.example"})
        try:
            answer = urlopen(request)
        except HTTPError as error:
            answer = error
        with answer:
            found = {key.lower(): value for key, value in answer.headers.items()}
        assert found.pop("date")
        return found

    def per_object() -> bool:
        with urlopen(f"http://127.0.0.1:{metrics}/metrics") as answer:
            return b'queue="seen"' in answer.read()

    with running_broker(*flags) as broker:
        with connected(broker) as connection:
            connection.channel().queue_declare("seen", durable=True)
        assert "strict-transport-security" not in headers()
        assert not per_object()
        conf.write_text(
            f"{fixed}management.hsts.policy = max-age=60\n"
            "management.cors.allow_origins.1 = https://ops.example\n"
            "management.csp.policy = default-src 'none'\n"
            "prometheus.return_per_object_metrics = true\n"
            "message_interceptors.incoming.set_header_timestamp.overwrite = true\n"
            "default_queue_type = quorum\n"
        )
        assert "changed only by a restart: default_queue_type" in done(broker, "config", "reload")
        found = headers()
        assert found["strict-transport-security"] == "max-age=60"
        assert found["content-security-policy"] == "default-src 'none'"
        assert found["access-control-allow-origin"] == "https://ops.example"
        assert per_object()
        with connected(broker) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", "seen", b"stamped")
            _, properties, _ = channel.basic_get("seen", auto_ack=True)
            assert properties.timestamp
        conf.write_text(f"{fixed}management.hsts.policy = max-age=90\nheartbeat = often\n")
        refused = asked(broker, "config", "reload")
        assert refused.returncode == 1
        assert "heartbeat" in refused.stderr
        assert headers() == found
        assert per_object()
