"""Log lines in syslog and in the journal: real sockets, and a broker that writes to them."""

from __future__ import annotations

import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harebell.config import Config
from harebell.server.logs.formats import Line, formatter_of
from harebell.server.logs.logger import Logger
from harebell.server.logs.system import SyslogFrame, SystemSocket, journal_entry
from tests.patience import SECONDS, eventually
from tests.running import running_broker
from tests.unit.server.listening import talk

LINE = Line(1_700_000_000_123_456_789, "warning", "connection", 7, "a café")


@pytest.fixture
def daemon() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("127.0.0.1", 0))
        link.settimeout(SECONDS)
        yield link


def framed(**keys: str) -> str:
    config = Config(log_syslog_facility="local3", **keys)
    return SyslogFrame(config, formatter_of(config, "syslog")).text(LINE)


def test_a_line_has_the_frame_of_rfc_3164_with_facility_and_severity() -> None:
    assert re.fullmatch(
        r"<156>Nov 1[45] [\d:]{8} \S+ harebell\[\d+\]: <0\.7\.0> - a café", framed()
    )


def test_the_daemon_of_the_same_machine_is_not_told_its_name() -> None:
    text = framed(log_syslog_host="/dev/log", log_syslog_identity="amqp")
    assert re.fullmatch(r"<156>Nov 1[45] [\d:]{8} amqp\[\d+\]: <0\.7\.0> - a café", text)


def test_a_line_has_the_frame_of_rfc_5424() -> None:
    text = framed(log_syslog_protocol="rfc5424", log_syslog_plaintext_format="$msg")
    assert re.fullmatch(
        r"<156>1 2023-11-1\dT[\d:.]{15}[+-]\d\d:\d\d \S+ harebell \d+ - - a café", text
    )


def test_an_entry_of_the_journal_has_the_fields_of_a_line(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(path)
        SystemSocket(path).write([journal_entry(LINE)])
        fields = dict(line.split("=", 1) for line in journal.recv(65_536).decode().splitlines())
    assert fields["MESSAGE"] == "a café"
    assert (fields["PRIORITY"], fields["SYSLOG_IDENTIFIER"]) == ("4", "harebell")
    assert (fields["HAREBELL_CATEGORY"], fields["HAREBELL_PROCESS"]) == ("connection", "<0.7.0>")


def test_a_broker_sends_its_lines_to_syslog(daemon: socket.socket) -> None:
    port = str(daemon.getsockname()[1])
    flags = ("--log-syslog", "true", "--log-syslog-host", "127.0.0.1", "--log-syslog-port", port)
    with running_broker(*flags):
        received = b""
        while b"Server startup complete" not in received:
            received = daemon.recv(65_536)
    assert re.match(rb"<30>\w{3} [ \d]\d [\d:]{8} \S+ harebell\[\d+\]: <0\.0\.0> - ", received)


def test_lines_reach_a_server_over_tcp_also_after_it_was_restarted(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        output = SystemSocket("127.0.0.1", port, tcp=True)
        output.write(["one", "two"])
        first, _ = server.accept()
        with first:
            assert first.recv(100) == b"one\ntwo\n"
        deadline = time.monotonic() + SECONDS
        server.settimeout(0.1)
        while time.monotonic() < deadline:
            output.write(["three"])
            try:
                second, _ = server.accept()
            except TimeoutError:
                continue
            with second:
                assert second.recv(6) == b"three\n"
            break
        else:
            raise AssertionError("no line came after the server was there again")
    output.close()


def test_a_daemon_that_reads_nothing_does_not_hold_up_the_other_outputs(tmp_path: Path) -> None:
    path = str(tmp_path / "log.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full:
        full.bind(path)
        config = Config(
            data_dir=tmp_path,
            log_console=False,
            log_file="h.log",
            log_syslog=True,
            log_syslog_host=path,
        )
        logger = Logger(config)
        for number in range(2_000):
            logger.write("info", f"line {number}")
        assert logger.drain(SECONDS)
        logger.close()
    assert len((tmp_path / "log" / "h.log").read_text().splitlines()) == 2_000


def test_a_line_that_the_daemon_does_not_take_at_once_is_dropped_and_later_ones_arrive(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(path)
        output = SystemSocket(path)
        # The kernel keeps a few hundred datagrams for a reader.
        output.write([f"{number}" for number in range(10_000)])
        reader.setblocking(False)
        found = 0
        with suppress(BlockingIOError):
            while reader.recv(100):
                found += 1
        assert 0 < found < 10_000
        output.write(["after"])
        assert reader.recv(100) == b"after"
        output.close()


def test_a_category_with_a_file_of_its_own_is_in_no_other_file(tmp_path: Path) -> None:
    conf = tmp_path / "rabbitmq.conf"
    conf.write_text(
        f"log.dir = {tmp_path}\nlog.file = main.log\nlog.connection.file = connections.log\n"
        "log.connection.rotation.count = 3\n"
    )
    with running_broker("--config", str(conf)) as broker:
        talk(broker.port)
        assert eventually(lambda: "accepting" in (tmp_path / "connections.log").read_text())
        main = (tmp_path / "main.log").read_text()
        assert "Server startup complete" in main
        assert "accepting" not in main
        assert eventually(lambda: "accepting" in broker.log)  # the console has every category
        (tmp_path / "connections.log").rename(tmp_path / "connections.log.1")
        broker.process.send_signal(signal.SIGHUP)
        assert eventually((tmp_path / "connections.log").exists)
