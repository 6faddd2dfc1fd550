"""`harebell serve` as a user meets it: addresses, configuration, signals, and what can go wrong."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from harebell import __version__
from harebell.client.blocking import Connection, connect
from harebell.client.errors import AMQPError, ConnectionForced
from tests.cli.conftest import error_of, run_harebell
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.running import RunningBroker, command, environment, running_broker

HEADER = b"AMQP\x00\x00\x09\x01"


def accepts_amqp(port: int) -> bool:
    """Whether a broker answers the protocol header with connection.start."""
    try:
        with socket.create_connection(("127.0.0.1", port), SECONDS) as link:
            link.sendall(HEADER)
            return link.recv(11)[:1] == b"\x01"
    except ConnectionError:
        return False


def pump_to_the_end(connection: Connection) -> NoReturn:
    """Read until the connection's end, which is an exception."""
    while True:
        connection.pump(20)


def certificate(directory: Path) -> tuple[str, str]:
    """A certificate for localhost and its key, made by openssl."""
    pem, key = str(directory / "cert.pem"), str(directory / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", key, "-out", pem),
        ],
        check=True,
        capture_output=True,
    )
    return pem, key


def test_a_broker_says_where_it_listens_and_when_it_is_ready(broker: RunningBroker) -> None:
    # Lines of the log, which begin with the time, come between them.
    lines = [line for line in broker.log.splitlines() if not line[0].isdigit()]
    assert lines[0].startswith(f"harebell {__version__} (")
    assert lines[1] == f"listening on amqp://127.0.0.1:{broker.port}"
    assert lines[2] == f"data directory {broker.data_dir}"
    assert lines[3] == "Server startup complete"
    assert accepts_amqp(broker.port)


def test_a_broker_accepts_connections_soon_after_its_start(tmp_path: Path) -> None:
    # How soon is for the benchmarks to say; a start that waits for something is found here.
    port = free_port()
    flags = ["serve", "--port", str(port), "--data-dir", str(tmp_path)]
    process = subprocess.Popen(
        [command(), *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    try:
        assert eventually(lambda: process.poll() is not None or accepts_amqp(port))
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_gracefully(number: signal.Signals) -> None:
    with running_broker() as broker:
        connection = connect(broker.address())
        connection.channel()
        broker.process.send_signal(number)
        with pytest.raises(ConnectionForced) as caught:
            pump_to_the_end(connection)
        assert caught.value.code == 320
        # Another signal would kill it where it has nothing left to do but to end.
        assert broker.process.wait(SECONDS) == 0
        assert not (broker.data_dir / "control.sock").exists()


def test_flags_win_over_the_environment_and_both_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text('port = 1\nheartbeat = 7\ndefault_user = "from-file"\nchannel_max = 5\n')
    env = {"HAREBELL_DEFAULT_USER": "from-env", "HAREBELL_DEFAULT_PASS": "sesame"}
    with running_broker("--config", str(file), "--port", "0", env=env) as broker:
        url = broker.address().replace("amqp://", "amqp://from-env:sesame@")
        with connect(url) as connection:
            assert connection.heartbeat == 7
        with pytest.raises(AMQPError, match="ACCESS_REFUSED"):
            connect(broker.address())


def test_a_busy_port_is_a_sentence(broker: RunningBroker, tmp_path: Path) -> None:
    result = run_harebell("serve", "--port", str(broker.port), "--data-dir", str(tmp_path))
    assert result.returncode == 1
    assert error_of(result) == (
        f"127.0.0.1:{broker.port} is in use already: stop what listens there, or choose another "
        "port with --port (0 picks a free one)"
    )


def test_an_address_of_another_machine_is_a_sentence(tmp_path: Path) -> None:
    flags = ["--host", "192.0.2.1", "--port", "0", "--data-dir", str(tmp_path)]
    result = run_harebell("serve", *flags)
    assert result.returncode == 1
    assert "192.0.2.1" in error_of(result)
    assert "--host" in error_of(result)


def test_a_wrong_flag_is_answered_with_the_nearest_one() -> None:
    result = run_harebell("serve", "--prot", "5672")
    assert result.returncode == 2
    assert error_of(result) == "No option --prot: did you mean --port?"


def test_a_wrong_value_is_a_sentence() -> None:
    result = run_harebell("serve", "--port", "amqp")
    assert result.returncode == 2
    assert error_of(result) == "--port must be a whole number from 0 to 65535, or none, not 'amqp'"


def test_a_wrong_key_in_the_file_is_answered_with_the_nearest_one(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text('hots = "127.0.0.1"\n')
    result = run_harebell("serve", "--config", str(file))
    assert result.returncode == 2
    assert error_of(result) == f"{file}, line 1: the key hots is unknown: did you mean host?"


def test_a_wrong_variable_is_answered_with_the_nearest_one() -> None:
    result = run_harebell("serve", env={"HAREBELL_HEARTBEET": "5"})
    assert result.returncode == 2
    assert error_of(result).endswith("did you mean HAREBELL_HEARTBEAT?")


def test_a_password_on_the_command_line_is_refused() -> None:
    result = run_harebell("serve", "--default-pass", "sesame")
    assert result.returncode == 2
    assert "HAREBELL_DEFAULT_PASS" in error_of(result)
    assert b"sesame" not in result.stderr


def test_a_broker_serves_tls_when_it_has_a_certificate(tmp_path: Path) -> None:
    pem, key = certificate(tmp_path)
    flags = ["--tls-port", "0", "--tls-cert", pem, "--tls-key", key]
    with running_broker(*flags) as broker:
        address = broker.address("amqps")
        with connect(f"{address}?cacertfile={pem}") as connection:
            assert connection.is_open
        with pytest.raises(AMQPError):
            connect(address)


def test_tls_files_that_do_not_fit_are_a_sentence(tmp_path: Path) -> None:
    pem, _ = certificate(tmp_path)
    flags = ["--tls-port", "0", "--tls-cert", pem, "--tls-key", pem]
    result = run_harebell("serve", "--port", "0", "--data-dir", str(tmp_path), *flags)
    assert result.returncode == 1
    assert pem in error_of(result)


def test_a_data_directory_belongs_to_one_broker(broker: RunningBroker) -> None:
    result = run_harebell("serve", "--port", "0", "--data-dir", str(broker.data_dir))
    assert result.returncode == 1
    assert "another broker runs on the data directory" in error_of(result)


def test_a_data_directory_that_cannot_be_made_is_a_sentence() -> None:
    result = run_harebell("serve", "--port", "0", "--data-dir", "/proc/no/such/place")
    assert result.returncode == 1
    assert "cannot use the data directory /proc/no/such/place" in error_of(result)


def test_a_data_directory_with_too_long_a_path_is_a_sentence(tmp_path: Path) -> None:
    result = run_harebell("serve", "--port", "0", "--data-dir", str(tmp_path / ("x" * 100)))
    assert result.returncode == 1
    assert "choose a shorter directory with --data-dir" in error_of(result)


def test_a_broker_starts_again_where_it_was_killed(tmp_path: Path) -> None:
    with running_broker("--data-dir", str(tmp_path)) as broker:
        broker.stop(signal.SIGKILL)
        assert (tmp_path / "control.sock").exists()
    with running_broker("--data-dir", str(tmp_path)) as broker:
        assert accepts_amqp(broker.port)


def test_only_its_owner_can_enter_the_data_directory(broker: RunningBroker) -> None:
    assert stat.S_IMODE(os.stat(broker.data_dir).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(broker.data_dir / "control.sock").st_mode) == 0o600


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_both_event_loops_serve(loop: str) -> None:
    with running_broker("--loop", loop) as broker:
        assert accepts_amqp(broker.port)
        assert broker.stop() == 0


def test_help_names_every_flag_with_its_variable() -> None:
    result = run_harebell("serve", "--help")
    assert result.returncode == 0
    text = " ".join(result.stdout.decode().split())
    assert "--handshake-timeout-seconds" in text
    assert "HAREBELL_TLS_PORT" in text
    assert "--default-pass " not in text
