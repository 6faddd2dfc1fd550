"""Definitions that a broker loads at its start: from an HTTPS server, and from a directory."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.interop.client.certificates import make_certificates
from tests.patience import eventually
from tests.ports import free_port
from tests.running import DidNotStart, RunningBroker, command, environment, running_broker

HASH = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"


def document(*queues: str) -> bytes:
    found = {
        "vhosts": [{"name": "/"}],
        "users": [{"name": "ann", "password_hash": HASH, "tags": "administrator"}],
        "queues": [
            {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
            for name in queues
        ],
    }
    return json.dumps(found).encode()


class Server:
    """A server of definitions over TLS.

    Attributes:
        content: what it answers with.
        status: the status of the answer.
        logins: the header of each request.
    """

    def __init__(self, certificates: Path) -> None:
        self.content = b""
        self.status = 200
        self.logins: list[str | None] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.logins.append(self.headers.get("authorization"))
                self.send_response(owner.status)
                self.send_header("content-length", str(len(owner.content)))
                self.end_headers()
                self.wfile.write(owner.content)

            def log_message(self, *_words: object) -> None:
                """Print nothing."""

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://bob:s3same%2Fopen@127.0.0.1:{self.http.server_port}/d.json?token=hidden"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture
def server(certificates: Path) -> Iterator[Server]:
    made = Server(certificates)
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture
def conf(tmp_path: Path, server: Server, certificates: Path) -> Path:
    path = tmp_path / "rabbitmq.conf"
    path.write_text(
        "definitions.import_backend = https\n"
        f"definitions.https.url = {server.url}\n"
        f"definitions.tls.cacertfile = {certificates / 'ca.pem'}\n"
        "definitions.skip_if_unchanged = true\n"
    )
    return path


def queues_of(broker: RunningBroker) -> list[str]:
    done = subprocess.run(
        [command(), "queues", "list", "--json", "--data-dir", str(broker.data_dir)],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    return [row["name"] for row in json.loads(done.stdout)]


def test_definitions_are_fetched_with_the_login_of_the_url(conf: Path, server: Server) -> None:
    server.content = document("jobs", "mails")
    with running_broker("--config", str(conf)) as broker:
        assert queues_of(broker) == ["jobs", "mails"]
        assert server.logins == [f"Basic {b64encode(b'bob:s3same/open').decode()}"]
        assert "s3same" not in broker.log
        assert "hidden" not in broker.log


def test_unchanged_definitions_are_not_loaded_again(
    conf: Path, server: Server, tmp_path: Path
) -> None:
    flags = ("--config", str(conf), "--data-dir", str(tmp_path / "data"))
    server.content = document("jobs")
    with running_broker(*flags):
        pass
    with running_broker(*flags) as broker:
        assert eventually(lambda: "are unchanged, they are not loaded" in broker.log)
    server.content = document("jobs", "mails")
    with running_broker(*flags) as broker:
        assert queues_of(broker) == ["jobs", "mails"]


@pytest.mark.parametrize(
    ("status", "content", "reason"),
    [
        (404, b"", "the server answers 404 Not Found"),
        (302, b"", "the server answers 302 Found"),
        (200, b"<html>", "the definitions are no JSON object"),
        (200, document("jobs", "x" * 300), "queues: "),
    ],
)
def test_a_server_without_definitions_ends_the_start_and_changes_nothing(
    conf: Path, server: Server, tmp_path: Path, status: int, content: bytes, reason: str
) -> None:
    data_dir = str(tmp_path / "data")
    server.status, server.content = status, content
    with (
        pytest.raises(DidNotStart) as raised,
        running_broker("--config", str(conf), "--data-dir", data_dir),
    ):
        pass
    shown = str(raised.value)
    assert reason in shown
    assert f"https://127.0.0.1:{server.http.server_port}/d.json" in shown
    assert "s3same" not in shown
    with running_broker("--data-dir", data_dir) as broker:
        assert queues_of(broker) == []


def test_a_certificate_that_nobody_vouches_for_ends_the_start(conf: Path, server: Server) -> None:
    server.content = document("jobs")
    lines = [line for line in conf.read_text().splitlines() if "cacertfile" not in line]
    conf.write_text("\n".join(lines) + "\n")
    with (
        pytest.raises(DidNotStart, match="certificate verify failed"),
        running_broker("--config", str(conf)),
    ):
        pass
    conf.write_text("\n".join([*lines, "definitions.tls.verify = verify_none"]) + "\n")
    with running_broker("--config", str(conf)) as broker:
        assert queues_of(broker) == ["jobs"]


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    conf = tmp_path / "harebell.toml"
    url = f"https://127.0.0.1:{free_port()}/d.json"
    conf.write_text(f'definitions_import_backend = "https"\ndefinitions_https_url = "{url}"\n')
    with (
        pytest.raises(DidNotStart, match=f"fetched from {url}.*refused"),
        running_broker("--config", str(conf)),
    ):
        pass


def test_all_files_of_a_directory_are_loaded_or_none(tmp_path: Path) -> None:
    source, data_dir = tmp_path / "definitions", str(tmp_path / "data")
    source.mkdir()
    (source / "1.json").write_bytes(document("jobs"))
    (source / "2.json").write_bytes(document("mails", "x" * 300))
    flags = ("--load-definitions", str(source), "--data-dir", data_dir)
    with pytest.raises(DidNotStart, match=r"2\.json cannot be loaded"), running_broker(*flags):
        pass
    with running_broker("--data-dir", data_dir) as broker:
        assert queues_of(broker) == []
    (source / "2.json").write_bytes(document("mails"))
    with running_broker(*flags) as broker:
        assert queues_of(broker) == ["jobs", "mails"]


def test_a_start_that_fails_says_why_although_its_log_is_published(tmp_path: Path) -> None:
    policy = {"name": "weak", "vhost": "/", "pattern": "^x", "definition": {"durability": "os"}}
    good, wrong = tmp_path / "good.json", tmp_path / "wrong.json"
    good.write_text(json.dumps({"vhosts": [{"name": "/"}], "policies": [policy]}))
    wrong.write_text(json.dumps({"queues": [{"name": 5}]}))
    flags = ("--data-dir", str(tmp_path / "data"), "--log-exchange", "true", "--load-definitions")
    with running_broker(*flags, str(good)):
        pass
    with pytest.raises(DidNotStart) as raised, running_broker(*flags, str(wrong)):
        pass
    # This line is published, and what follows from that comes when the start has failed.
    assert "policy 'weak'" in str(raised.value)
    assert "wrong.json cannot be loaded" in str(raised.value)
    assert "Traceback" not in str(raised.value)
