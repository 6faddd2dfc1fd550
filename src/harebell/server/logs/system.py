"""Send log lines to the log of the system: syslog (RFC 3164 and 5424), and systemd's journal.

    <158>Nov 25 13:07:25 host harebell[29359]: <0.0.0> - started TCP listener     RFC 3164
    <158>1 2026-11-25T13:07:25.906690+00:00 host harebell 29359 - - <0.0.0> - ... RFC 5424

A line is a datagram over UDP or a Unix socket, so that nothing waits for a reader: a datagram that
the system does not take at once is dropped. Over TCP each line ends in a line feed.
"""

from __future__ import annotations

import os
import platform
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from logging.handlers import SysLogHandler
from typing import TYPE_CHECKING, Any

from harebell.server.limits import LOG_SOCKET_SECONDS
from harebell.server.logs.formats import Formatter, Line, time_of

if TYPE_CHECKING:
    from harebell.config import Config

_SEVERITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3}
_MONTHS = (*("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),)
_NS = 1_000_000_000


class SyslogFrame:
    """Puts lines into the frame of syslog.

    Args:
        config: protocol, identity and facility.
        formatter: makes the text inside of the frame.
    """

    def __init__(self, config: Config, formatter: Formatter) -> None:
        self._formatter = formatter
        self._facility = SysLogHandler.facility_names[config.log_syslog_facility]
        self._is_5424 = config.log_syslog_protocol == "rfc5424"
        self._identity = config.log_syslog_identity
        self._host = platform.node() or "-"
        self._pid = os.getpid()
        self._local = config.log_syslog_host.startswith("/")

    def text(self, line: Line) -> str:
        """Return the line in its frame."""
        priority = self._facility * 8 + _SEVERITIES[line.level]
        shown = self._formatter.format(line)
        if self._is_5424:
            at = time_of("rfc3339_t", line.at)
            return f"<{priority}>1 {at} {self._host} {self._identity} {self._pid} - - {shown}"
        local = time.localtime(line.at // _NS)
        # The day has a space for a zero, and the month is English in every locale.
        month = _MONTHS[local.tm_mon - 1]
        at = f"{month} {local.tm_mday:2d} {time.strftime('%H:%M:%S', local)}"
        # The daemon of this machine adds its name itself.
        host = "" if self._local else f"{self._host} "
        return f"<{priority}>{at} {host}{self._identity}[{self._pid}]: {shown}"


def journal_entry(line: Line) -> str:
    """Return a line as the fields of an entry of the journal; a text has no line breaks."""
    return (
        f"MESSAGE={line.text}\nPRIORITY={_SEVERITIES[line.level]}\n"
        f"SYSLOG_IDENTIFIER=harebell\nSYSLOG_PID={os.getpid()}\n"
        f"HAREBELL_CATEGORY={line.category}\nHAREBELL_PROCESS={line.pid}\n"
    )


class SystemSocket:
    """Sends texts over a socket, which is opened at the first text and again after an error.

    Args:
        host: a host, or the path of a Unix socket.
        port: the port of the host.
        tcp: whether TCP is used.
    """

    def __init__(self, host: str, port: int = 0, *, tcp: bool = False) -> None:
        self._host = host
        self._port = port
        self._tcp = tcp
        self._link: socket.socket | None = None

    def write(self, lines: Sequence[str]) -> None:
        """Send lines.

        Raises:
            OSError: they were not sent, or not all of them.
        """
        for line in lines:
            data = line.encode("utf-8", "backslashreplace")
            try:
                self._send(data)
            except BlockingIOError:
                continue  # the reader is slow: the line is dropped, the rest is tried
            except OSError:
                # The daemon was restarted: once more with a new socket.
                self.close()
                self._send(data)

    def reopen(self) -> None:
        """Open the socket anew at the next line."""
        self.close()

    def close(self) -> None:
        """Close the socket."""
        if self._link is not None:
            with suppress(OSError):
                self._link.close()
            self._link = None

    def _send(self, data: bytes) -> None:
        if self._link is None:
            self._link = self._opened()
        if self._tcp:
            self._link.sendall(data + b"\n")
        else:
            self._link.send(data)

    def _opened(self) -> socket.socket:
        if self._tcp:
            link = socket.create_connection((self._host, self._port), LOG_SOCKET_SECONDS)
            link.settimeout(LOG_SOCKET_SECONDS)
            return link
        if self._host.startswith("/"):
            link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            target: Any = self._host
        else:
            family, _, _, _, where = socket.getaddrinfo(
                self._host, self._port, type=socket.SOCK_DGRAM
            )[0]
            link = socket.socket(family, socket.SOCK_DGRAM)
            target = where
        try:
            link.setblocking(False)
            link.connect(target)
        except OSError:
            link.close()
            raise
        return link


def syslog_of(config: Config) -> SystemSocket:
    """Return the output for syslog."""
    tcp = config.log_syslog_transport == "tcp"
    return SystemSocket(config.log_syslog_host, config.log_syslog_port, tcp=tcp)


def journald_of(config: Config) -> SystemSocket:
    """Return the output for the journal of systemd."""
    return SystemSocket(config.log_journald_socket)
