"""`harebell --server`: the commands of administration on a broker over HTTP and HTTPS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Result, error_of, run_harebell
from tests.interop.client.certificates import make_certificates
from tests.ports import free_port
from tests.running import running_broker


class Server(NamedTuple):
    """A broker with its HTTP API over TLS.

    Args:
        port: of HTTPS.
        plain: of HTTP.
        ca: the certificate of its authority.
    """

    port: int
    plain: int
    ca: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = make_certificates(tmp_path_factory.mktemp("certificates"), "IP:127.0.0.1")
    certificate, key = directory / "server.pem", directory / "server.key"
    tls, plain, amqps = free_port(), free_port(), free_port()
    flags = [
        *("--management-port", str(plain), "--management-tls-port", str(tls)),
        *("--tls-port", str(amqps), "--tls-cert", str(certificate), "--tls-key", str(key)),
    ]
    with running_broker(*flags):
        yield Server(tls, plain, directory / "ca.pem")


def ask(server: Server, *words: str, password: str = "guest", **env: str) -> Result:
    """Run the command against the server over HTTPS."""
    about = {
        "HAREBELL_SERVER": f"https://guest@127.0.0.1:{server.port}",
        "HAREBELL_SERVER_CA": str(server.ca),
        "HAREBELL_SERVER_PASSWORD": password,
        **env,
    }
    return run_harebell(*words, env=about)


def done(server: Server, *words: str) -> str:
    result = ask(server, *words)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode()


def test_a_queue_is_declared_listed_and_deleted_over_https(server: Server) -> None:
    name = "a/b%2F..é"
    assert done(server, "queues", "declare", name) == (
        f"queue '{name}' in vhost '/' was declared\n"
    )
    rows = json.loads(done(server, "queues", "list", "--json"))
    assert [row["name"] for row in rows] == [name]
    assert "was deleted" in done(server, "queues", "delete", name)


def test_status_and_top_show_the_other_broker(server: Server) -> None:
    assert f"https://127.0.0.1:{server.port}" in done(server, "status")
    shown = json.loads(done(server, "top", "--once", "--json", "--interval", "0.1"))
    assert shown["node"] == json.loads(done(server, "status", "--json"))["node"]


def test_health_checks_the_other_broker(server: Server) -> None:
    assert done(server, "health") == "healthy: ping, running, alarms, listeners, vhosts\n"
    assert done(server, "health", "--stage", "ping", "--json") == (
        '{"status":"ok","passed":["ping"]}\n'
    )
    refused = ask(server, "health", password="wrong")
    assert refused.returncode == 1
    assert refused.stderr.startswith(b"unhealthy: ping: ")
    assert b"refuses the login of 'guest'" in refused.stderr
    gone = ask(server, "health", HAREBELL_SERVER=f"https://guest@127.0.0.1:{free_port()}")
    assert gone.returncode == 1
    assert b"no broker answers at" in gone.stderr


def test_the_flag_is_the_same_as_the_variable(server: Server) -> None:
    result = run_harebell(
        *("--server", f"http://guest@127.0.0.1:{server.plain}", "vhosts", "list", "--json"),
        env={"HAREBELL_SERVER_PASSWORD": "guest"},
    )
    assert json.loads(result.stdout)[0]["name"] == "/"


def test_an_unknown_authority_is_refused(server: Server) -> None:
    result = ask(server, "queues", "list", HAREBELL_SERVER_CA="")
    assert result.returncode == 4
    assert "certificate" in error_of(result)


def test_a_certificate_for_another_host_is_refused(server: Server) -> None:
    url = f"https://guest@localhost:{server.port}"
    result = ask(server, "queues", "list", HAREBELL_SERVER=url)
    assert result.returncode == 4
    assert "not valid for 'localhost'" in error_of(result)


def test_a_wrong_password_is_refused_and_not_repeated(server: Server) -> None:
    result = ask(server, "queues", "list", password="wrong-secret")
    assert result.returncode == 4
    assert "refuses the login of 'guest'" in error_of(result)
    assert b"wrong-secret" not in result.stderr


def test_the_password_comes_from_a_file(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("guest\n")
    result = ask(
        server, "queues", "list", password="wrong", HAREBELL_SERVER_PASSWORD_FILE=str(file)
    )
    assert result.returncode == 0, result.stderr


def test_without_a_password_or_a_terminal_the_error_says_where_to_put_it(server: Server) -> None:
    result = run_harebell(
        "queues", "list", env={"HAREBELL_SERVER": f"http://guest@127.0.0.1:{server.plain}"}
    )
    assert result.returncode == 1
    assert "HAREBELL_SERVER_PASSWORD_FILE" in error_of(result)


def test_refusals_say_what_the_control_socket_says(server: Server) -> None:
    result = ask(server, "queues", "purge", "none")
    assert result.returncode == 1
    assert "no queue 'none' in vhost '/'" in error_of(result)


def test_tags_decide_as_on_the_routes_of_the_commands(server: Server) -> None:
    done(server, "users", "add", "viewer", "pw", "--tags", "management")
    done(server, "users", "add", "watcher", "pw", "--tags", "monitoring")

    def as_user(name: str, *words: str) -> Result:
        url = f"https://{name}@127.0.0.1:{server.port}"
        return ask(server, *words, password="pw", HAREBELL_SERVER=url)

    for words in (["users", "list"], ["queues", "declare", "x"], ["stages", "list"]):
        refused = as_user("viewer", *words)
        assert refused.returncode == 1, words
        assert "refused: " in error_of(refused)
    assert as_user("watcher", "stages", "list").returncode == 0
    assert as_user("watcher", "status").returncode == 0
    assert as_user("watcher", "queues", "purge", "x").returncode == 1


def test_nothing_there_is_exit_code_4() -> None:
    result = run_harebell(
        "queues",
        "list",
        env={
            "HAREBELL_SERVER": f"http://guest@127.0.0.1:{free_port()}",
            "HAREBELL_SERVER_PASSWORD": "guest",
        },
    )
    assert result.returncode == 4
    assert "no broker answers at http://127.0.0.1:" in error_of(result)
