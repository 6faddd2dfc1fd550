"""A running broker with the configuration of RabbitMQ: life in its log, and reloads."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from harebell.config.setting import Reload
from harebell.config.settings import SETTINGS
from harebell.server.reloading import APPLIED
from tests.patience import eventually
from tests.running import RunningBroker, asked, running_broker

PASSWORD = "s3same-open"
CONF = f"""\
default_user = ann
default_pass = {PASSWORD}
default_vhost = orders
default_user_tags.administrator = true
default_users.bob.password = {PASSWORD}-bob
default_users.bob.read = ^public
default_limits.vhosts.all.pattern = .*
default_limits.vhosts.all.max_queues = 2
default_policies.operator.short.queue_pattern = ^short
default_policies.operator.short.message_ttl = 1m
log.console.level = debug
"""


def connected(
    broker: RunningBroker, user: str = "ann", password: str = PASSWORD, vhost: str = "orders"
) -> pika.BlockingConnection:
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "127.0.0.1", broker.port, vhost, pika.PlainCredentials(user, password)
        )
    )


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "rabbitmq.conf"
    path.write_text(CONF + f"log.dir = {tmp_path / 'logs'}\n")
    return path


@pytest.fixture
def broker(conf: Path) -> Iterator[RunningBroker]:
    with running_broker("--config", str(conf)) as running:
        yield running


def test_the_life_of_a_connection_is_logged_in_the_words_of_rabbitmq(
    broker: RunningBroker,
) -> None:
    with connected(broker):
        pass
    name = rf"127\.0\.0\.1:\d+ -> 127\.0\.0\.1:{broker.port}"
    begin = r"[\d-]{10} [\d:.]{15}[+-]\d\d:\d\d \[info\] "
    lines = [
        rf"{begin}<0\.0\.0> started TCP listener on 127\.0\.0\.1:{broker.port}",
        rf"{begin}<0\.0\.0> Server startup complete; \d+ plugins started\.",
        rf"{begin}<0\.1\.0> accepting AMQP connection {name}",
        rf"{begin}<0\.1\.0> connection {name}: user 'ann' authenticated and granted access to "
        "vhost 'orders'",
        rf"{begin}<0\.1\.0> closing AMQP connection \({name}, vhost: 'orders', user: 'ann', "
        r"duration: '\d+m?s'\)",
    ]
    for line in lines:
        assert eventually(lambda line=line: re.search(f"^{line}$", broker.log, re.M)), broker.log


def test_passwords_and_bodies_are_in_no_log_at_the_level_debug(
    broker: RunningBroker, tmp_path: Path
) -> None:
    with connected(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"confidential-body")
        channel.basic_publish("", "q", b"confidential-body", mandatory=True)
    for user, password in (("ann", "wrong-secret"), ("nobody", "wrong-secret")):
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            connected(broker, user, password)
    assert asked(broker, "users", "add", "carl", "wrong-secret-carl").returncode == 0
    assert asked(broker, "users", "password", "carl", "other-secret-carl").returncode == 0
    broker.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: "the configuration was read again" in broker.log)
    (file,) = (tmp_path / "logs").iterdir()
    for text in (broker.log, file.read_text()):
        assert "login refused: user 'nobody'" in text
        assert "client unexpectedly closed" not in text
        for secret in (PASSWORD, "secret", "confidential"):
            assert secret not in text


def test_new_vhosts_get_users_limits_and_operator_policies(broker: RunningBroker) -> None:
    with (
        connected(broker, "bob", f"{PASSWORD}-bob") as connection,
        pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED"),
    ):
        connection.channel().basic_get("private")
    assert asked(broker, "vhosts", "add", "later").returncode == 0
    connected(broker, "bob", f"{PASSWORD}-bob", "later").close()
    limits = json.loads(asked(broker, "limits", "list", "--vhost", "later", "--json").stdout)
    assert [(row["limit"], row["value"]) for row in limits] == [("max-queues", 2)]
    policies = json.loads(asked(broker, "operator-policies", "list", "--json").stdout)
    assert {row["vhost"] for row in policies} == {"/", "orders", "later"}
    assert all(row["definition"] == {"message-ttl": 60_000} for row in policies)


def test_a_reload_changes_what_can_and_names_what_cannot(
    broker: RunningBroker, conf: Path, tmp_path: Path
) -> None:
    conf.write_text(
        CONF + f"log.dir = {tmp_path / 'logs'}\nlog.connection.level = none\nheartbeat = 7\n"
        "credential_validator.validation_backend = "
        "rabbit_credential_validator_min_password_length\n"
        "credential_validator.min_length = 30\ndefault_vhost = other\n"
    )
    done = asked(broker, "config", "reload")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "4 keys changed: credential_validator, credential_validator_min_length, heartbeat, "
        "log_levels; changed only by a restart: default_vhost\n"
    )
    before = broker.log.count("accepting AMQP connection")
    with connected(broker) as connection:
        assert connection._impl.params.heartbeat == 7
    refused = asked(broker, "users", "add", "dora", "short")
    assert "password length should be at least 30 characters" in refused.stderr
    assert broker.log.count("accepting AMQP connection") == before


def test_a_bad_file_changes_nothing_and_says_why(broker: RunningBroker, conf: Path) -> None:
    conf.write_text(CONF + "heartbeat = 7\nframe_max = tiny\n")
    done = asked(broker, "config", "reload")
    assert done.returncode == 1
    line = CONF.count("\n") + 2
    assert f"{conf}, line {line}: frame_max must be a size" in done.stderr
    assert "the configuration stays as it is" in done.stderr
    with connected(broker) as connection:
        assert connection._impl.params.heartbeat == 60
    conf.write_text(CONF + "log.file = /proc/no/such.log\n")
    broker.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: "cannot write the log file /proc/no/such.log" in broker.log)
    connected(broker).close()


def test_the_log_file_follows_logrotate(broker: RunningBroker, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "harebell.log"
    assert eventually(lambda: "Server startup complete" in path.read_text())
    path.rename(tmp_path / "logs" / "moved")
    broker.process.send_signal(signal.SIGHUP)
    assert eventually(path.exists)
    connected(broker).close()
    assert eventually(lambda: "accepting AMQP connection" in path.read_text())


def test_every_part_that_a_key_names_is_changed_by_a_reload() -> None:
    assert {setting.reload for setting in SETTINGS} == {*Reload, None}
    # The log and TLS are changed first: see `harebell.server.reloading`.
    assert set(APPLIED) == set(Reload) - {Reload.AT_USE, Reload.LOG, Reload.TLS}
