"""Known secrets are in no log, listing, answer or error of a running broker."""

from __future__ import annotations

import base64
import http.client
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import eventually
from tests.ports import free_port
from tests.running import RunningBroker, command, environment, running_broker

SECRETS = ("s3same-default", "s3same-ann", "s3same-wrong", "s3same-body", "s3same-changed")
SECONDS = 60
CONF = """\
default_user = root
default_pass = s3same-default
default_users.bob.vhost_pattern = .*
default_users.bob.password = s3same-ann
log.console.level = debug
"""


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conf") / "rabbitmq.conf"
    path.write_text(CONF)
    return path


@pytest.fixture(scope="module")
def broker(conf: Path) -> Iterator[RunningBroker]:

    flags = ("--config", str(conf), "--management-port", str(free_port()))
    with running_broker(*flags, "--metrics-port", str(free_port())) as started:
        yield started


def asked(broker: RunningBroker, *words: str) -> str:
    """What a command prints, whether it succeeds or not."""
    done = subprocess.run(
        [command(), *words],
        capture_output=True,
        text=True,
        env=environment({"HAREBELL_DATA_DIR": str(broker.data_dir)}),
        timeout=SECONDS,
        check=False,
    )
    return done.stdout + done.stderr


def requested(
    broker: RunningBroker, method: str, path: str, body: str = "", password: str = SECRETS[0]
) -> str:
    """Status and body of an answer of the HTTP API."""
    port = int(broker.address("http").rpartition(":")[2])
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    login = base64.b64encode(f"root:{password}".encode()).decode()
    link.request(method, path, body or None, {"authorization": f"Basic {login}"})
    answer = link.getresponse()
    text = f"{answer.status} {answer.read().decode()}"
    link.close()
    return text


def test_no_secret_is_printed_logged_or_answered(broker: RunningBroker, conf: Path) -> None:
    user = json.dumps({"password": SECRETS[1], "tags": "administrator"})
    outputs = [
        requested(broker, "PUT", "/api/users/ann", user),
        requested(broker, "PUT", "/api/users/ann", user + SECRETS[2]),
        requested(broker, "PUT", "/api/users/eve", json.dumps({"password": [SECRETS[2]]})),
        requested(broker, "GET", "/api/whoami", password=SECRETS[2]),
        requested(
            broker,
            "POST",
            "/api/exchanges/%2F/amq.default/publish",
            json.dumps(
                {
                    "properties": {},
                    "routing_key": "nowhere",
                    "payload": SECRETS[3],
                    "payload_encoding": "string",
                }
            ),
        ),
        asked(broker, "users", "password", "ann", SECRETS[4]),
        asked(broker, "users", "password", "nobody", SECRETS[2]),
        asked(broker, "users", "authenticate", "ann", SECRETS[2]),
        asked(broker, "config", "show", "--config", str(conf), "--origin"),
        asked(broker, "config", "convert", str(conf)),
        asked(broker, "config", "check", str(conf)),
        asked(broker, "config", "reload"),
        asked(broker, "status", "--json"),
        asked(broker, "users", "list", "--json"),
        asked(broker, "definitions", "export"),
    ]
    outputs += [
        requested(broker, "GET", f"/api/{name}")
        for name in ("overview", "nodes", "users", "definitions", "whoami", "connections")
    ]
    assert [re.match(r"\d+", each)[0] for each in outputs[:5]] == [  # type: ignore[index]
        *("201", "400", "400", "401", "200"),
    ]
    assert "default_pass" in outputs[8]
    assert eventually(lambda: "Successfully changed password for user 'ann'" in broker.log)
    for text in (*outputs, broker.log):
        for secret in SECRETS:
            assert secret not in text, text


def test_a_wrong_secret_is_named_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "harebell.toml"
    path.write_text('default_pass = ["s3same-default"]\n')
    done = subprocess.run(
        [command(), "config", "check", str(path)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode != 0
    assert "default_pass" in done.stderr
    assert "s3same" not in done.stdout + done.stderr


def test_names_with_line_breaks_forge_no_line_of_the_log(broker: RunningBroker) -> None:
    name = "x\n2026-01-01 00:00:00.000000+00:00 [error] <0.0.0> forged\r\x1b[31m\u202e\u2028"
    asked(broker, "users", "add", name, "password")
    asked(broker, "vhosts", "add", name)
    quoted = "%0A2026%20%5Berror%5D%20forged%1B%E2%80%A8"
    requested(broker, "PUT", f"/api/users/{quoted}", json.dumps({"password": "x", "tags": ""}))
    assert eventually(lambda: broker.log.count("Created user '") >= 2)
    assert not re.search(r"^2026\S* \S*\s*\[error\].* forged", broker.log, re.M)
    assert not re.search("[\x1b\u202e\u2028\r]", broker.log)
