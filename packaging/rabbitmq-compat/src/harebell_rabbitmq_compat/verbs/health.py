"""Ping, health checks and listeners."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harebell_rabbitmq_compat.exits import (
    DATA,
    TEMPORARY,
    UNAVAILABLE,
    VerbFailed,
    WrongArguments,
)
from harebell_rabbitmq_compat.verb import ANY, CTL, DIAGNOSTICS, Call, Report, Result, verb

_PROTOCOLS = {"amqp": "amqp", "amqps": "amqp/ssl", "http": "http", "https": "https"}
_PURPOSES = {
    "amqp": "AMQP 0-9-1 and other versions of AMQP",
    "amqp/ssl": "AMQP 0-9-1 and other versions of AMQP over TLS",
    "http": "HTTP API",
    "https": "HTTP API over TLS",
    "http/prometheus": "Prometheus exporter API over HTTP",
}
_ALSO_CALLED = {
    **dict.fromkeys(("amqp091", "amqp0.9.1", "amqp0-9-1", "amqp-0-9-1", "amqp10"), "amqp"),
    **dict.fromkeys(("amqps", "amqp/tls", "amqp-ssl", "amqp-tls"), "amqp/ssl"),
    **dict.fromkeys(("management", "http-api"), "http"),
    "prometheus": "http/prometheus",
}
_WITH_TLS = ("amqp/ssl", "https")
_CONNECT_SECONDS = 10.0
_DAY_SECONDS = 86_400


def listeners_of(call: Call) -> list[dict[str, Any]]:
    """Return the listeners of the broker as RabbitMQ describes them."""
    listeners = []
    overview = call.node.overview()
    for address in overview["listeners"]:
        parts = urlsplit(str(address))
        protocol = _PROTOCOLS.get(parts.scheme, parts.scheme)
        if parts.path.startswith("/metrics"):
            protocol = "http/prometheus"
        listeners.append(
            {
                "interface": _interface(parts.hostname or ""),
                "node": overview["node"],
                "port": parts.port,
                "protocol": protocol,
                "purpose": _PURPOSES.get(protocol, protocol),
            }
        )
    return listeners


def _interface(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def alarms_of(overview: dict[str, Any]) -> list[str]:
    """Return the resources that are short: "memory", "disk"."""
    named = [str(name) for name in overview.get("shortages", ())]
    if overview.get("memory_alarm") and "memory" not in named:
        named.append("memory")
    return sorted(named)


def listener_line(row: dict[str, Any]) -> str:
    """Describe a listener in a line."""
    return (
        f"Interface: {row['interface']}, port: {row['port']}, protocol: {row['protocol']}, "
        f"purpose: {row['purpose']}"
    )


def _milliseconds(call: Call) -> int:
    return int(1000 * (call.flags.get("timeout") or 60))


@verb(
    "[--timeout <timeout>]",
    state=ANY,
    banner=lambda call: (
        f"Will ping {call.node.wanted}. This only checks if the OS process is running and answers "
        f"on its control socket. Timeout: {_milliseconds(call)} ms."
    ),
)
def ping(call: Call) -> Result:
    """Check that the process answers."""
    try:
        call.node.overview(_milliseconds(call) / 1000)
    except VerbFailed as error:
        why = str(error).rpartition("\n")[2]
        raise VerbFailed(
            f"Failed to connect and authenticate to {call.node.wanted} in "
            f"{_milliseconds(call)} ms\n{why}"
        ) from None
    return Report("Ping succeeded", message="Ping succeeded")


_NOT_RUNNING = "is not running or has not fully booted yet (check with is_booting)"


def _running(call: Call) -> Result:
    name = call.node.overview()["node"]
    text = f"RabbitMQ on node {name} is fully booted and running"
    return Report(text, result="ok", message=text)


@verb(banner="Checking if RabbitMQ is running on node {node} ...", tools=DIAGNOSTICS, state=ANY)
def check_running(call: Call) -> Result:
    """Fail unless the broker runs."""
    overview = call.node.overview()
    if overview["state"] != "running":
        raise VerbFailed(f"RabbitMQ on node {overview['node']} {_NOT_RUNNING}")
    return _running(call)


@verb(banner="Asking node {node} for its status ...", tools=DIAGNOSTICS, state=ANY)
def is_running(call: Call) -> Result:
    """Say whether the broker runs; fail if its process does not answer."""
    overview = call.node.overview()
    if overview["state"] != "running":
        text = f"RabbitMQ on node {overview['node']} {_NOT_RUNNING}"
        return Report(text, result=False, message=text)
    return _running(call)


@verb(banner="Asking node {node} for its boot status ...", tools=DIAGNOSTICS, state=ANY)
def is_booting(call: Call) -> Result:
    """Say whether the broker is starting."""
    name = call.node.overview()["node"]
    return Report(
        f"RabbitMQ on node {name} is fully booted (check with is_running), stopped or has not "
        "started booting yet",
        result=False,
    )


def _alarm_check(call: Call, none: str) -> Result:
    overview = call.node.overview()
    short = alarms_of(overview)
    if short:
        lines = "\n".join(f"{name.capitalize()} alarm on node {overview['node']}" for name in short)
        raise VerbFailed(f"Node {overview['node']} reported alarms:\n{lines}", UNAVAILABLE)
    return Report(f"Node {overview['node']} reported {none}", result="ok")


@verb(banner="Asking node {node} to report any local resource alarms ...", tools=DIAGNOSTICS)
def check_local_alarms(call: Call) -> Result:
    """Fail if memory or disk is short."""
    return _alarm_check(call, "no local alarms")


@verb(banner="Asking node {node} to report any local resource alarms ...", tools=DIAGNOSTICS)
def check_alarms(call: Call) -> Result:
    """Fail if memory or disk is short."""
    return _alarm_check(call, "no alarms, local or clusterwide")


@verb(banner="Asking node {node} to report any known resource alarms ...", tools=DIAGNOSTICS)
def alarms(call: Call) -> Result:
    """Print which resources are short."""
    overview = call.node.overview()
    name, short = overview["node"], alarms_of(overview)
    text = "\n".join(f"{each.capitalize()} alarm on node {name}" for each in short)
    shown = text or f"Node {name} reported no alarms, local or clusterwide"
    return Report(shown, alarms=short, node=name, result="ok")


@verb(
    "[--address <ip address to use for checks>] [--timeout <timeout>]",
    banner="Testing TCP connections to all active listeners on node {node} ...",
    tools=DIAGNOSTICS,
)
def check_port_connectivity(call: Call) -> Result:
    """Fail unless every listener takes TCP connections."""
    name = call.node.overview()["node"]
    reached, failed = [], []
    for row in listeners_of(call):
        host = call.flags.get("address") or _reachable(str(row["interface"]))
        try:
            socket.create_connection((host, row["port"]), _CONNECT_SECONDS).close()
            reached.append(row["port"])
        except OSError as error:
            failed.append(f"{listener_line(row)}: {error.strerror or error}")
    if failed:
        shown = "\n".join(failed)
        raise VerbFailed(
            f"Connection to ports of the following listeners on node {name} failed: {shown}"
        )
    ports = ", ".join(str(port) for port in sorted(reached))
    return Report(f"Successfully connected to ports {ports} on node {name}.", result="ok")


def _reachable(interface: str) -> str:
    """Return an address to connect to for one that a listener is bound to."""
    host = interface.strip("[]")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # compared only


@verb(
    "<port> [--timeout <timeout>]",
    check=lambda call: _check_port(call),
    banner="Asking node {node} if there's an active listener on port {0} ...",
    tools=DIAGNOSTICS,
)
def check_port_listener(call: Call) -> Result:
    """Fail unless there is a listener for a port."""
    text = call.arguments[0]
    name, rows = call.node.overview()["node"], listeners_of(call)
    if int(text) not in {row["port"] for row in rows}:
        ports = ", ".join(str(port) for port in sorted(row["port"] for row in rows))
        raise VerbFailed(
            f"No listener for port {text} is active on node {name}. Found listeners that use the "
            f"following ports: {ports}",
            heading="",
        )
    return Report(f"A listener for port {text} is running on node {name}.", result="ok")


def _check_port(call: Call) -> None:
    text = call.arguments[0]
    if not text.isdigit() or not int(text):
        raise WrongArguments("Bad argument: Argument must be a positive integer", DATA)


@verb(
    "<protocol> [--timeout <timeout>]",
    banner="Asking node {node} if there's an active listener for protocol {0} ...",
    tools=DIAGNOSTICS,
)
def check_protocol_listener(call: Call) -> Result:
    """Fail unless there is a listener for a protocol."""
    asked = call.arguments[0].lower()
    wanted = _ALSO_CALLED.get(asked, asked)
    name, known = call.node.overview()["node"], {row["protocol"] for row in listeners_of(call)}
    if wanted not in known:
        raise VerbFailed(
            f"No listener for protocol {call.arguments[0]} is active on node {name}. Found "
            f"listeners for the following protocols: {', '.join(sorted(known))}"
        )
    return Report(
        f"A listener for protocol {call.arguments[0]} is running on node {name}.", result="ok"
    )


@verb(banner="Asking node {node} to report its protocol listeners ...", tools=DIAGNOSTICS)
def listeners(call: Call) -> Result:
    """Print where the broker listens."""
    rows = listeners_of(call)
    text = "\n".join(listener_line(row) for row in rows)
    return Report(text, listeners=rows, node=call.node.overview()["node"], result="ok")


_UNITS = {"days": 1, "weeks": 7, "months": 28, "years": 365}


@verb(
    "[--within <period>] [--unit <unit>]",
    flags={"within": int},
    check=lambda call: _check_unit(call),
    banner="Checking certificate expiration on node {node} ...",
    tools=DIAGNOSTICS,
)
def check_certificate_expiration(call: Call) -> Result:
    """Fail if a certificate of a listener expires soon."""
    within, unit = call.flags.get("within", 4), call.flags.get("unit", "weeks")
    import time

    now = time.time()
    expiring = []
    for row in certificates_of(call):
        left = (row["expires_at"] - now) / _DAY_SECONDS
        if left < within * _UNITS[unit]:
            expiring.append(f"{listener_line(row)}: expires in {left:.0f} days")
    if expiring:
        raise VerbFailed("Certificates of these listeners expire:\n" + "\n".join(expiring))
    shown = unit.removesuffix("s") if within == 1 else unit
    return Report(f"No certificates are expiring within {within} {shown}.", result="ok")


def _check_unit(call: Call) -> None:
    unit = call.flags.get("unit", "weeks")
    if unit not in _UNITS:
        raise WrongArguments(
            f"\"unit '{unit}' is not supported. Please use one of: {', '.join(_UNITS)}\""
        )


def certificates_of(call: Call) -> list[dict[str, Any]]:
    """Return the TLS listeners with the time at which their certificates expire.

    Raises:
        VerbFailed: a listener does not answer with a certificate.
    """
    from datetime import UTC, datetime

    certificates = []
    for row in listeners_of(call):
        if row["protocol"] in _WITH_TLS:
            expires_at = _expires_at(_reachable(str(row["interface"])), row["port"])
            shown = f"{datetime.fromtimestamp(expires_at, UTC):%Y-%m-%d %H:%M:%S}"
            certificates.append({**row, "certfile_expires_on": shown, "expires_at": expires_at})
    return certificates


def _expires_at(host: str, port: int) -> float:
    """Return when the certificate of a listener expires, in seconds since 1970.

    Raises:
        VerbFailed: the listener does not answer with a certificate.
    """
    import ssl

    from harebell_rabbitmq_compat.certificates import not_after

    try:
        pem = ssl.get_server_certificate((host, port), timeout=_CONNECT_SECONDS)
    except OSError as error:
        raise VerbFailed(f"cannot read the certificate of {host}:{port}: {error}") from None
    return not_after(ssl.PEM_cert_to_DER_cert(pem))


# --- waiting --------------------------------------------------------------------------------------


def _await(call: Call, seconds: float) -> None:
    """Wait until the broker answers.

    Raises:
        VerbFailed: it does not within the time.
    """
    import time

    until = time.monotonic() + seconds
    while True:
        if _serves(call):
            return
        if time.monotonic() >= until:
            raise _timed_out(call, seconds)
        time.sleep(0.05)


def _serves(call: Call) -> bool:
    """Whether the broker answers and is not stopped."""
    try:
        return bool(call.node.overview(again=True)["state"] == "running")
    except VerbFailed:
        return False


def _await_file(call: Call, file: Path, seconds: float) -> float:
    """Wait until a file is there; returns the seconds that are left.

    Raises:
        VerbFailed: it is not there within the time.
    """
    import time

    until = time.monotonic() + seconds
    while not file.exists():
        if time.monotonic() >= until:
            raise _timed_out(call, seconds)
        time.sleep(0.05)
    return until - time.monotonic()


def _timed_out(call: Call, seconds: float) -> VerbFailed:
    return VerbFailed(
        f"Error: operation wait on node {call.node.wanted} timed out. Timeout value used: "
        f"{int(1000 * seconds)}",
        TEMPORARY,
        heading="",
    )


@verb("[--timeout <timeout>]", tools=CTL, state=ANY)
def await_startup(call: Call) -> None:
    """Wait until the broker answers."""
    _await(call, call.flags.get("timeout") or 300.0)


@verb(
    "[<pidfile>] [--pid|-P <pid>] [--timeout <timeout>]",
    flags={"pid": int},
    state=ANY,
    banner=lambda call: (
        f"Waiting for pid file '{call.arguments[0]}' to appear"
        if call.arguments
        else f"Waiting for erlang distribution on node '{call.node.wanted}'"
    ),
)
def wait(call: Call) -> str:
    """Wait until the broker answers; a pid file has to be there, too."""
    if not call.arguments and "pid" not in call.flags:
        raise WrongArguments("No pid or pidfile provided")
    seconds = call.flags.get("timeout") or 10.0
    if call.arguments:
        seconds = _await_file(call, Path(call.arguments[0]), seconds)
    _await(call, seconds)
    return f"Applications 'rabbit_and_plugins' are running on node '{call.node.name}'"


@verb(
    "<count>", tools=CTL, state=ANY, banner="Will wait for at least {0} nodes to join the cluster"
)
def await_online_nodes(call: Call) -> None:
    """Wait until there are so many nodes."""
    text = call.arguments[0]
    if not text.isdigit():
        raise WrongArguments("Bad argument: count must be a positive integer", DATA)
    if int(text) > 1:
        raise VerbFailed("a Harebell broker is a cluster of one node", TEMPORARY)
    _await(call, call.flags.get("timeout") or 300.0)


@verb(
    banner=lambda call: (
        "This command is DEPRECATED and will be removed in a future version.\n"
        "It performs intrusive, opinionated health checks and requires a fully booted node.\n"
        "Use one of the options covered in https://www.rabbitmq.com/monitoring.html#health-checks "
        "instead.\n"
        f"Timeout: {call.flags.get('timeout', 70):g} seconds ...\n"
        f"Checking health of node {call.node.name} ..."
    ),
    tools=(CTL, DIAGNOSTICS),
)
def node_health_check(call: Call) -> str:
    """Check alarms and vhosts; the checks of rabbitmq-diagnostics are better."""
    _alarm_check(call, "no alarms")
    call.ask("vhosts.list")
    return "Health check passed"
