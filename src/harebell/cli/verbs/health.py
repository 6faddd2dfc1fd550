"""`harebell health`: check a broker in stages, for probes that run it every few seconds.

The first stage that fails ends the check, and its reason is the answer. A probe that is too strict
restarts brokers that only have something to wait for, so that a stage can be chosen: `ping` for
liveness, all of them for readiness.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from harebell.base.limits import CONTROL_TIMEOUT_SECONDS
from harebell.cli.nouns import server_url
from harebell.cli.verb import FAILED, Verb, WrongUsage, echo
from harebell.server.config import CONFIG_VARIABLE, ConfigError, load
from harebell.server.config.settings import BY_NAME
from harebell.server.control.client import ControlError, ask_command, ask_overview

STAGES = ("ping", "running", "alarms", "listeners", "vhosts")
"""The stages in their order; each includes those before it."""
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not bound


class Unhealthy(Exception):
    """A stage failed; the text is the reason."""


class Checks:
    """The stages, on the broker of a data directory.

    Args:
        data_dir: the data directory.
        patience: timeout of each request and connection, in seconds.
    """

    def __init__(self, data_dir: Path, patience: float) -> None:
        self._data_dir = data_dir
        self._patience = patience
        self._overview: dict[str, Any] = {}

    def ping(self) -> None:
        """Check that the broker answers."""
        try:
            self._overview = ask_overview(self._data_dir, self._patience)
        except ControlError as error:
            raise Unhealthy(str(error)) from None

    def running(self) -> None:
        """Check that it listens for clients."""
        if self._overview["state"] != "running":
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
        """Check that every listener takes a TCP connection."""
        for address in self._overview["listeners"]:
            parts = urlsplit(str(address))
            host, port = parts.hostname or "127.0.0.1", parts.port or 0
            target = (_ANY_ADDRESS.get(host, host), port)
            try:
                socket.create_connection(target, self._patience).close()
            except OSError as error:
                raise Unhealthy(
                    f"{address} takes no connection: {error.strerror or error}"
                ) from None

    def vhosts(self) -> None:
        """Check that the broker answers for its vhosts."""
        try:
            ask_command(self._data_dir, "vhosts.list", {}, self._patience)
        except ControlError as error:
            raise Unhealthy(str(error)) from None


def checked(checks: Checks, until: str) -> Mapping[str, Any]:
    """Run the stages until one fails.

    Args:
        checks: the stages.
        until: the last stage to run.

    Returns:
        `status`, the stages in `passed`, and for a failure `failed` and `reason`.
    """
    passed: list[str] = []
    for stage in STAGES[: STAGES.index(until) + 1]:
        check: Callable[[], None] = getattr(checks, stage)
        try:
            check()
        except Unhealthy as error:
            return {"status": "failed", "passed": passed, "failed": stage, "reason": str(error)}
        passed.append(stage)
    return {"status": "ok", "passed": passed}


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
@click.option(
    "--data-dir",
    metavar="DIRECTORY",
    help=f"Data directory of the broker. [{BY_NAME['data_dir'].variable}]",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    help=f"Configuration file of the broker. [{CONFIG_VARIABLE}]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
@click.pass_context
def health(
    ctx: click.Context,
    stage: str,
    timeout: float,
    data_dir: str | None,
    config_file: str | None,
    as_json: bool,
) -> None:
    """Check a running broker, for probes.

    The exit code is 0 if it is healthy, and 1 with the reason if not. The stages are ping (it
    answers), running (it listens), alarms (memory and disk suffice), listeners (every port takes
    a connection) and vhosts.
    """
    if server_url():
        raise WrongUsage(
            "harebell health checks a broker of this machine: for another one ask its HTTP API, "
            "/api/health/checks/alarms"
        )
    try:
        config = load({"data_dir": data_dir}, config_file=config_file)
    except ConfigError as error:
        raise WrongUsage(str(error)) from None
    found = checked(Checks(config.data_dir, timeout), stage)
    healthy = found["status"] == "ok"
    if as_json:
        import msgspec

        echo(msgspec.json.encode(found).decode())
    elif healthy:
        echo(f"healthy: {', '.join(found['passed'])}")
    else:
        echo(f"unhealthy: {found['failed']}: {found['reason']}", err=True)
    ctx.exit(0 if healthy else FAILED)
