"""`harebell status`: print the figures of a running broker from its control socket."""

from __future__ import annotations

from typing import Any

import click

from harebell.cli.broker_options import takes_broker
from harebell.cli.formats import takes_json
from harebell.cli.nouns import RunningBroker
from harebell.cli.verb import Verb, echo, echo_json
from harebell.management.limits import LAG_MAX_SECONDS

_KIB = 1024
_LAGS = (
    ("event_loop_lag_seconds", "event loop late by"),
    ("event_loop_busy_seconds", "event loop busy for"),
)
_MINUTE = 60


@click.command(cls=Verb)
@takes_broker
@takes_json("Print one line of JSON instead of a table.")
@click.option(
    "--lag",
    metavar="SECONDS",
    type=click.FloatRange(0.0, LAG_MAX_SECONDS),
    default=0.0,
    help="Watch the broker's event loop so long, and show how late it was at most.",
)
def status(data_dir: str | None, config_file: str | None, as_json: bool, lag: float) -> None:
    """Show what a running broker is doing.

    It is found by its data directory, as `harebell serve` finds it, or named by --url.
    """
    overview = RunningBroker(data_dir, config_file, as_json).overview(lag)
    if as_json:
        echo_json(overview)
    else:
        for name, value in rows(overview):
            echo(f"{name:<22}{value}")


def rows(overview: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and values of the figures for users."""
    if overview["state"] == "standby":
        return _standby_rows(overview)
    lags = [(say, f"{1000 * overview[name]:.1f} ms") for name, say in _LAGS if name in overview]
    return [
        ("version", overview["version"]),
        ("implementation", f"{overview['implementation']}, event loop {overview['loop']}"),
        ("process", str(overview["pid"])),
        ("uptime", duration(overview["uptime_seconds"])),
        ("data directory", overview["data_dir"]),
        *(("state", state) for state in _states(overview)),
        *(("listening on", address) for address in overview["listeners"]),
        ("connections", str(overview["connections"])),
        ("channels", str(overview["channels"])),
        ("queues", str(overview["queues"])),
        ("consumers", str(overview["consumers"])),
        ("messages ready", str(overview["messages_ready"])),
        ("messages unacked", str(overview["messages_unacknowledged"])),
        ("messages leased", str(overview["messages_leased"])),
        ("memory", _memory(overview)),
        ("messages in memory", size_text(overview["memory_messages_bytes"])),
        ("disk free", _disk(overview)),
        ("damage", _damage(overview)),
        ("durability", "; ".join([overview["durability"], *overview["weaker_durability"]])),
        *_storage(overview.get("storage", {"kind": "directory"})),
        ("blocked publishers", str(overview["blocked_connections"])),
        *_passed_on(overview),
        *lags,
    ]


def _standby_rows(overview: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a broker that stands by has to say."""
    storage = overview["storage"]
    return [
        ("version", overview["version"]),
        ("process", str(overview["pid"])),
        ("data directory", overview["data_dir"]),
        ("state", "standing by"),
        ("store", str(storage.get("store", ""))),
        ("owner of the store", storage.get("owner") or "none"),
        ("epoch", str(storage.get("epoch", ""))),
        *(("listening on", address) for address in overview["listeners"]),
        *_passed_on(overview),
        *(("trouble", trouble) for trouble in [overview["trouble"]] if trouble),
    ]


def _passed_on(overview: dict[str, Any]) -> list[tuple[str, str]]:
    """Describe clients of other stores; empty if all are served here."""
    if "connections_passed_on" not in overview:
        return []
    return [
        ("passed on", f"{overview['connections_passed_on']} connections"),
        ("waiting", f"{overview['connections_waiting']} connections"),
    ]


def _storage(storage: dict[str, Any]) -> list[tuple[str, str]]:
    """Describe a store in PostgreSQL; empty for one in the data directory."""
    if storage["kind"] == "directory":
        return []
    log, dead = size_text(storage["log_bytes"]), size_text(storage["log_dead_bytes"])
    return [
        ("storage", f"PostgreSQL, store {storage['store']}, epoch {storage['epoch']}"),
        ("owner of the store", f"{storage['owner']} (this broker)"),
        ("lease", f"{storage['lease_seconds']:.1f} s are left"),
        ("log", f"{log} in {storage['log_generations']} generations, {dead} of it dead"),
    ]


def _states(overview: dict[str, Any]) -> list[str]:
    """Describe why clients cannot connect; empty if they can."""
    if overview["state"] != "running":
        return ["stopped: `harebell app start`"]
    return ["suspended: `harebell listeners resume`"] if overview["listeners_suspended"] else []


def _memory(overview: dict[str, Any]) -> str:
    """Say what the process uses, and what the watermark is."""
    used, high = overview["memory_used_bytes"], overview["memory_high_watermark_bytes"]
    share = f"{100 * used / high:.0f}% of {size_text(high)}" if high else "the watermark is 0"
    alarm = "; publishers are blocked" if overview["memory_alarm"] else ""
    return f"{size_text(used)} ({share}){alarm}"


def _disk(overview: dict[str, Any]) -> str:
    """Describe the free space, the limit, and what publishers are blocked by."""
    limit = overview["disk_free_limit_bytes"]
    shown = size_text(overview["disk_free_bytes"])
    if limit:
        shown += f" (at least {size_text(limit)})"
    short = " & ".join(name for name in overview["shortages"] if name != "memory")
    return f"{shown}; low on {short}, publishers are blocked" if short else shown


def _damage(overview: dict[str, Any]) -> str:
    """Describe the damage since the start, and the files in quarantine."""
    count, kept = overview["damage_reports"], overview["quarantined_files"]
    parts = []
    if count:
        parts.append(f"reported {count} times since the start, at last: {overview['damage_last']}")
    if kept:
        parts.append(f"{kept} files in quarantine")
    return "; ".join(parts) or "none"


def size_text(count: int) -> str:
    """Format a size with a unit."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _KIB:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _KIB
    return f"{size:.1f} TiB"


def duration(seconds: float) -> str:
    """Format a duration as days, hours, minutes and seconds, without leading zeros."""
    minutes, rest = divmod(int(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    return " ".join(f"{value} {unit}" for value, unit in parts)
