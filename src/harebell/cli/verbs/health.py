"""`harebell health`: check a broker in stages, for probes that run it every few seconds.

The first stage that fails ends the check, and its reason is the answer. A probe that is too strict
restarts brokers that only have something to wait for, so that a stage can be chosen: `ping` for
liveness, all of them for readiness.

A machine of a cluster with several stores runs a process for each. Asked about its data directory,
which is that of store 1, the others are checked after that one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from harebell.base.printable import printable
from harebell.cli.broker_options import takes_broker
from harebell.cli.formats import takes_json
from harebell.cli.verb import FAILED, Failure, Verb, WrongUsage, echo, echo_json
from harebell.cli.which_broker import administered
from harebell.cluster.stores import FIRST_STORE, data_dir_of
from harebell.config import ConfigError, load
from harebell.management.control.client import ControlError, ask_command, ask_overview
from harebell.server.limits import CONTROL_TIMEOUT_SECONDS

STAGES = ("ping", "running", "alarms", "listeners", "vhosts")
"""The stages in their order; each includes those before it."""
_MS = 1_000
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not bound


class Unhealthy(Exception):
    """A stage failed; the text is the reason."""


class Local:
    """The broker of a data directory.

    Args:
        data_dir: the data directory.
        patience: timeout of each request, in seconds.
    """

    host = ""

    def __init__(self, data_dir: Path, patience: float) -> None:
        self._data_dir = data_dir
        self._patience = patience

    def of_store(self, number: int) -> Local:
        """Return the process of another store on the machine; this one is that of store 1."""
        return Local(data_dir_of(self._data_dir, FIRST_STORE, number), self._patience)

    def overview(self) -> dict[str, Any]:
        """Return the figures of the broker."""
        return ask_overview(self._data_dir, self._patience)

    def ask(self, command: str) -> Any:
        """Run a command without arguments."""
        return ask_command(self._data_dir, command, {}, self._patience)


class OfServer:
    """The broker of a URL; there is no prompt for its password.

    Args:
        url: where its HTTP API is.
        patience: timeout of each request, in seconds.

    Raises:
        ControlError: the URL, the password or the certificates cannot be used.
    """

    def __init__(self, url: str, patience: float) -> None:
        # Imported only if it is used.
        from harebell.management.control.remote import address_of, configured

        self.host = address_of(url).host
        self._remote = configured(url, lambda _text: None)
        self._patience = patience

    def overview(self) -> dict[str, Any]:
        """Return the figures of the broker."""
        figures: dict[str, Any] = self._remote.ask("service.figures", {}, self._patience)
        return figures

    def ask(self, command: str) -> Any:
        """Run a command without arguments."""
        return self._remote.ask(command, {}, self._patience)


class Checks:
    """The stages.

    Args:
        broker: where it listens: on this machine, or at an address.
        patience: timeout of each connection, in seconds.
        store: begins the reasons of failures; "" for the broker that was asked for.
    """

    def __init__(self, broker: Local | OfServer, patience: float, store: str = "") -> None:
        self._broker = broker
        self._patience = patience
        self._store = store
        self._overview: dict[str, Any] = {}

    def run(self, stage: str) -> None:
        """Check a stage; those before it have passed.

        Raises:
            Unhealthy: it failed.
        """
        check: Callable[[], None] = getattr(self, stage)
        try:
            check()
        except Unhealthy as error:
            raise Unhealthy(f"{self._store}{error}") from None

    def others(self) -> list[Checks]:
        """Return the checks of the machine's other processes, if this is that of store 1."""
        if not isinstance(self._broker, Local) or self._overview.get("store") != FIRST_STORE:
            return []
        return [
            Checks(self._broker.of_store(number), self._patience, f"store {number}: ")
            for number in range(FIRST_STORE + 1, FIRST_STORE + self._overview["stores"])
        ]

    def ping(self) -> None:
        """Check that the broker answers."""
        try:
            self._overview = self._broker.overview()
        except ControlError as error:
            raise Unhealthy(str(error)) from None

    def running(self) -> None:
        """Check that it listens for clients."""
        if self._overview["state"] == "standby":
            if self._overview["trouble"]:
                raise Unhealthy(self._overview["trouble"])
        elif self._overview["state"] != "running":
            raise Unhealthy("the broker is stopped: `harebell app start`")
        if self._overview["listeners_suspended"]:
            raise Unhealthy("the listeners are suspended: `harebell listeners resume`")
        if not self._overview["listeners"]:
            raise Unhealthy("the broker does not listen for clients: it starts or stops")

    def alarms(self) -> None:
        """Check that publishers are not blocked by a lack of memory or disk."""
        short = set(self._overview["shortages"])
        if self._overview["memory_alarm"]:
            short.add("memory")
        if short:
            raise Unhealthy(
                f"publishers are blocked, because this is short: {', '.join(sorted(short))}"
            )

    def listeners(self) -> None:
        """Check that every listener takes a TCP connection; of another machine, those it has."""
        for address in self._overview["listeners"]:
            parts = urlsplit(str(address))
            host, port = parts.hostname or "127.0.0.1", parts.port or 0
            elsewhere = self._broker.host
            if elsewhere and _is_loopback(host) and not _is_loopback(elsewhere):
                continue  # it is for clients of that machine alone
            target = (elsewhere or _ANY_ADDRESS[host] if host in _ANY_ADDRESS else host, port)
            try:
                socket.create_connection(target, self._patience).close()
            except OSError as error:
                raise Unhealthy(
                    f"{address} takes no connection: {error.strerror or error}"
                ) from None

    def vhosts(self) -> None:
        """Check that the broker answers for its vhosts; one that stands by has none."""
        if self._overview["state"] == "standby":
            return
        try:
            self._broker.ask("vhosts.list")
        except ControlError as error:
            raise Unhealthy(str(error)) from None


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine as it calls itself."""
    return host.startswith("127.") or host in ("::1", "localhost")


def checked(broker: Local | OfServer, patience: float, until: str) -> Mapping[str, Any]:
    """Run the stages until one fails, of every process that a machine has for its stores.

    Args:
        broker: where it listens.
        patience: timeout of each connection, in seconds.
        until: the last stage to run.

    Returns:
        `status`, the stages in `passed`, and for a failure `failed` and `reason`.
    """
    first = Checks(broker, patience)
    others: list[Checks] = []
    passed: list[str] = []
    for stage in STAGES[: STAGES.index(until) + 1]:
        try:
            first.run(stage)
            if stage == "ping":
                others = first.others()
            for each in others:
                each.run(stage)
        except Unhealthy as error:
            return {"status": "failed", "passed": passed, "failed": stage, "reason": str(error)}
        passed.append(stage)
    return {"status": "ok", "passed": passed}


def _findings(broker: Local | OfServer) -> list[dict[str, Any]]:
    """Return what the broker has found.

    Raises:
        Failure: it does not say it.
    """
    try:
        found: list[dict[str, Any]] = broker.ask("health.findings")
    except ControlError as error:
        raise Failure(str(error)) from None
    return found


def _show(findings: list[dict[str, Any]]) -> None:
    """Print the verdict, and each finding with what repairs it."""
    from harebell.admin.findings import counted, verdict

    echo(f"{verdict(counted(findings))}{':' if findings else ''}")
    for each in findings:
        since = datetime.fromtimestamp(each["since"] / _MS).astimezone()
        where = f" in vhost {printable(each['vhost'])}" if each["vhost"] else ""
        kind = f"{each['kind']} " if each["vhost"] else ""
        about = f"{kind}{printable(each['name'])}{where}"
        echo(f"\n{each['rule']}: {about}, since {since:%Y-%m-%d %H:%M:%S}")
        echo(f"  {printable(each['why'])}")
        echo(f"  {each['advice']}")
        if each["command"]:
            echo(f"  $ {printable(each['command'])}")


@click.command(cls=Verb)
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    default=STAGES[-1],
    show_default=True,
    help="The last stage to check; those before it are checked, too.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0.0, CONTROL_TIMEOUT_SECONDS, min_open=True),
    default=5.0,
    show_default=True,
    help="How long each stage may take.",
)
@click.option("--why", is_flag=True, help="Also list what needs somebody, and what repairs it.")
@takes_broker
@takes_json()
@click.pass_context
def health(
    ctx: click.Context,
    stage: str,
    timeout: float,
    why: bool,
    data_dir: str | None,
    config_file: str | None,
    as_json: bool,
) -> None:
    """Check a running broker, for probes.

    The exit code is 0 if it is healthy, and 1 with the reason if not. The stages are ping (it
    answers), running (it listens), alarms (memory and disk suffice), listeners (every port takes
    a connection) and vhosts. With --url it is another broker. On a machine with
    several stores the processes of all of them are checked.

    --why lists what the broker has found: queues without consumers, certificates that expire,
    and so on. They do not change the exit code: a probe would restart a broker that works.
    """
    url, data_dir = administered(data_dir)
    broker: Local | OfServer
    try:
        if url:
            broker = OfServer(url, timeout)
        else:
            broker = Local(load({"data_dir": data_dir}, config_file=config_file).data_dir, timeout)
    except (ConfigError, ControlError) as error:
        raise WrongUsage(str(error)) from None
    health_status = checked(broker, timeout, stage)
    healthy = health_status["status"] == "ok"
    findings = _findings(broker) if why and health_status["passed"] else None
    if as_json:
        echo_json(health_status if findings is None else {**health_status, "findings": findings})
    else:
        if healthy:
            echo(f"healthy: {', '.join(health_status['passed'])}")
        else:
            echo(f"unhealthy: {health_status['failed']}: {health_status['reason']}", err=True)
        if findings is not None:
            _show(findings)
    ctx.exit(0 if healthy else FAILED)
