"""What the broker is and uses: status, versions, memory, log, environment; stopping it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from harebell_rabbitmq_compat.exits import (
    DATA,
    TEMPORARY,
    USAGE,
    VerbFailed,
    WrongArguments,
)
from harebell_rabbitmq_compat.tables import Rows, column_names, encoded, lines
from harebell_rabbitmq_compat.verb import (
    ANY,
    CTL,
    DIAGNOSTICS,
    MANY,
    PLUGINS,
    QUEUES,
    STREAMS,
    UPGRADE,
    VERBS,
    Call,
    Report,
    Result,
    verb,
)
from harebell_rabbitmq_compat.verbs.health import alarms_of, listener_line, listeners_of

_UNITS = {"bytes": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_GB = 1e9
_FLAG_COLUMNS = ("name", "state", "stability", "provided_by", "desc", "doc_url")
FEATURE_FLAGS = (
    *("classic_mirrored_queue_version", "classic_queue_type_delivery_support"),
    *("direct_exchange_routing_v2", "drop_unroutable_metric", "empty_basic_get_metric"),
    *("feature_flags_v2", "implicit_default_bindings", "listener_records_in_ets"),
    *("maintenance_mode_status", "quorum_queue", "restart_streams", "stream_queue"),
    *(
        "stream_sac_coordinator_unblock_group",
        "stream_single_active_consumer",
        "tracking_records_in_ets",
    ),
    *("user_limits", "virtual_host_metadata"),
)
"""Flags of RabbitMQ 3.13; what they stand for is always there."""


def _titled(title: str, body: Iterable[str]) -> list[str]:
    heading = f"\x1b[1m{title}\x1b[0m" if sys.stdout.isatty() else title
    return [heading, "", *body, ""]


def _gb(octets: float) -> str:
    return f"{round(octets / _GB, 4)} gb"


@verb("[--unit <unit>] [--timeout <timeout>]", banner="Status of node {node} ...")
def status(call: Call) -> Result:
    """Print what the broker is, uses and listens on."""
    import platform

    overview = call.node.overview()
    rows = listeners_of(call)
    vhosts = call.ask("vhosts.list")
    alarms = alarms_of(overview)
    used, high = overview["memory_used_bytes"], overview["memory_high_watermark_bytes"]
    product = f"Harebell {overview['version']}"
    parts = [
        *_titled(
            "Runtime",
            [
                f"OS PID: {overview['pid']}",
                f"OS: {platform.system()}",
                f"Uptime (seconds): {int(overview['uptime_seconds'])}",
                f"Is under maintenance?: {str(overview['listeners_suspended']).lower()}",
                f"RabbitMQ version: {overview['rabbitmq_version']}",
                f"Product: {product}",
                f"Node name: {overview['node']}",
                f"Implementation: {overview['implementation']}, event loop {overview['loop']}",
            ],
        ),
        *_titled("Plugins", ["Enabled plugins:", "", " (features are built in)"]),
        *_titled("Data directory", [f"Node data directory: {overview['data_dir']}"]),
        *_titled("Log file(s)", [f" * {path}" for path in _log_paths(overview)]),
        *_titled("Alarms", [f"{each.capitalize()} alarm" for each in alarms] or ["(none)"]),
        *_titled(
            "Memory",
            [
                f"Total memory used: {_gb(used)}",
                f"Message memory used: {_gb(overview['memory_messages_bytes'])}",
                f"Memory high watermark setting: computed to: {_gb(high)}",
            ],
        ),
        *_titled(
            "Free Disk Space",
            [
                f"Low free disk space watermark: {_gb(overview['disk_free_limit_bytes'])}",
                f"Free disk space: {_gb(overview['disk_free_bytes'])}",
            ],
        ),
        *_titled(
            "Totals",
            [
                f"Connection count: {overview['connections']}",
                f"Queue count: {overview['queues']}",
                f"Virtual host count: {len(vhosts)}",
            ],
        ),
        *_titled("Listeners", [listener_line(row) for row in rows]),
    ]
    return Report(
        "\n".join(parts).rstrip(),
        active_plugins=[],
        alarms=alarms,
        data_directory=overview["data_dir"],
        disk_free=overview["disk_free_bytes"],
        disk_free_limit=overview["disk_free_limit_bytes"],
        is_under_maintenance=overview["listeners_suspended"],
        listeners=rows,
        log_files=_log_paths(overview),
        memory={"strategy": "messages", "total": {"rss": used, "allocated": used, "erlang": 0}},
        os=platform.system(),
        pid=overview["pid"],
        product_name="Harebell",
        product_version=overview["version"],
        rabbitmq_version=overview["rabbitmq_version"],
        totals={
            "virtual_host_count": len(vhosts),
            "connection_count": overview["connections"],
            "queue_count": overview["queues"],
        },
        uptime=int(overview["uptime_seconds"]),
        vm_memory_high_watermark_limit=high,
    )


def _log_paths(overview: dict[str, Any]) -> list[str]:
    console = [f"<{overview['log_console']}>"] if overview["log_console"] else []
    return [*overview["log_files"], *console]


@verb(banner="Cluster status of node {node} ...")
def cluster_status(call: Call) -> Result:
    """Print the cluster, which has one node."""
    overview = call.node.overview()
    name, rows, alarms = overview["node"], listeners_of(call), alarms_of(overview)
    cluster = _cluster_name(call)
    version = overview["rabbitmq_version"]
    flags = [{"name": each, "state": "enabled"} for each in FEATURE_FLAGS]
    parts = [
        *_titled("Basics", [f"Cluster name: {cluster}"]),
        *_titled("Disk Nodes", [name]),
        *_titled("Running Nodes", [name]),
        *_titled("Versions", [f"{name}: RabbitMQ {version} (Harebell {overview['version']})"]),
        *_titled("Maintenance status", [f"Node: {name}, status: not under maintenance"]),
        *_titled(
            "Alarms", [f"{each.capitalize()} alarm on node {name}" for each in alarms] or ["(none)"]
        ),
        *_titled("Network Partitions", ["(none)"]),
        *_titled(
            "Listeners",
            [f"Node: {name}, {_lower_first(listener_line(row))}" for row in rows],
        ),
        *_titled("Feature flags", [f"Flag: {each['name']}, state: enabled" for each in flags]),
    ]
    return Report(
        "\n".join(parts).rstrip(),
        alarms=alarms,
        cluster_name=cluster,
        disk_nodes=[name],
        feature_flags=flags,
        listeners={name: rows},
        maintenance_status={name: "not under maintenance"},
        partitions={},
        ram_nodes=[],
        running_nodes=[name],
        versions={name: {"rabbitmq_name": "Harebell", "rabbitmq_version": version}},
    )


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _cluster_name(call: Call) -> str:
    for row in call.ask("global-parameters.list"):
        if row["name"] == "cluster_name":
            return str(row["value"])
    return str(call.node.overview()["node"])


@verb(tools=(CTL, DIAGNOSTICS, PLUGINS, QUEUES, STREAMS, UPGRADE), state=ANY)
def version(call: Call) -> str:
    """Print the version of RabbitMQ that the tools stand for."""
    from harebell.front.common.settings import COMPATIBLE_VERSION

    return COMPATIBLE_VERSION


@verb(banner="Asking node {node} for its RabbitMQ version...", tools=DIAGNOSTICS)
def server_version(call: Call) -> Result:
    """Print the version of RabbitMQ that the broker stands for."""
    version = str(call.node.overview()["rabbitmq_version"])
    return Report(version, message=version)


@verb(
    "[--unit <unit>]",
    check=lambda call: _check_unit(call),
    banner="Reporting memory breakdown on node {node}...",
    tools=DIAGNOSTICS,
)
def memory_breakdown(call: Call) -> Result:
    """Print what memory is used for."""
    unit = call.flags.get("unit", "gb").lower()
    overview = call.node.overview()
    used = int(overview["memory_used_bytes"])
    messages = min(int(overview["memory_messages_bytes"]), used)
    shares = {"messages": messages, "other": used - messages}
    total = sum(shares.values()) or 1
    text = "\n".join(
        f"{name}: {round(count / _UNITS[unit], 4)} {unit} ({round(100 * count / total, 2)}%)"
        for name, count in sorted(shares.items(), key=lambda item: -item[1])
    )
    members = {
        name: {"bytes": count, "percentage": round(100 * count / total, 2)}
        for name, count in shares.items()
    }
    return Report(text, **members)


def _check_unit(call: Call) -> None:
    unit = call.flags.get("unit", "gb").lower()
    if unit not in _UNITS:
        raise WrongArguments(f"Bad argument: unit {unit} is not one of {', '.join(_UNITS)}", DATA)


@verb(
    "[--no-table-headers] [<column>]",
    arguments=(0, MANY),
    columns=_FLAG_COLUMNS,
    banner="Listing feature flags ...",
)
def list_feature_flags(call: Call) -> Rows:
    """Print feature flags, which are all enabled."""
    columns = column_names(call.arguments) or ["name", "state"]
    call.node.overview()
    values = {"state": "enabled", "stability": "required", "provided_by": "harebell"}
    rows = [{"desc": "", "doc_url": "", **values, "name": name} for name in FEATURE_FLAGS]
    return Rows(columns, rows)


@verb(
    "<all | feature_flag>",
    flags={"experimental": bool, "opt-in": bool},
    tools=CTL,
    banner=lambda call: (
        "Enabling all feature flags ..."
        if call.arguments[0] == "all"
        else f'Enabling feature flag "{call.arguments[0]}" ...'
    ),
)
def enable_feature_flag(call: Call) -> None:
    """Accept a known feature flag: it is enabled already."""
    name = call.node.overview()["node"]
    if call.arguments[0] not in ("all", *FEATURE_FLAGS):
        raise VerbFailed(f"This feature flag is not supported by node {name}", USAGE)


@verb(state=ANY, banner="Application environment of node {node} ...")
def environment(call: Call) -> Result:
    """Print the configuration that the broker runs with as JSON, without secrets."""
    known: dict[str, Any] = call.ask("config.effective")
    return Report(encoded({"harebell": known}), harebell=known)


@verb(banner="Reporting server status of node {node} ...")
def report(call: Call) -> str:
    """Print everything that the other verbs print."""
    names = (
        "status",
        "cluster_status",
        "list_connections",
        "list_channels",
        "list_users",
        "list_vhosts",
    )
    per_vhost = (
        *("list_queues", "list_exchanges", "list_bindings", "list_consumers"),
        *("list_permissions", "list_policies", "list_parameters", "list_vhost_limits"),
    )
    parts: list[str] = []

    def add(name: str, flags: dict[str, Any]) -> None:
        each = VERBS[name]
        inner = Call(call.node, [], flags, call.say)
        parts.extend([each.announcement(inner), "", _text_of(each.run(inner)), ""])

    for name in names:
        add(name, {})
    for row in call.ask("vhosts.list"):
        for name in per_vhost:
            add(name, {"vhost": row["name"]})
    return "\n".join(parts)


def _text_of(result: Result) -> str:
    if isinstance(result, Rows):
        return "\n".join(lines(result, "table", headers=True))
    return result.text if isinstance(result, Report) else str(result or "")


# --- stopping -------------------------------------------------------------------------------------


def _stop(call: Call, seconds: float) -> None:
    """End the process of the broker in an orderly way, and wait until it has ended.

    Raises:
        VerbFailed: it belongs to another user, or has not ended within the time.
    """
    import os
    import signal
    import time

    pid = int(call.node.overview()["pid"])
    try:
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            os.kill(pid, 0)
            if _is_zombie(pid):
                return
            time.sleep(0.05)
    except ProcessLookupError:
        return
    except PermissionError:
        raise VerbFailed(f"the process {pid} of the broker belongs to another user") from None
    raise VerbFailed(f"the process {pid} has not ended after {seconds:g} seconds", TEMPORARY)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended and only its parent has not asked for its exit code yet."""
    from pathlib import Path

    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] == "Z"


@verb(
    "[--idempotent] [<pidfile>]",
    tools=CTL,
    state=ANY,
    banner="Stopping and halting node {node} ...",
)
def stop(call: Call) -> None:
    """Stop the broker and wait for the end of its process."""
    try:
        _stop(call, call.flags.get("timeout") or 300.0)
    except VerbFailed:
        if not call.flags.get("idempotent"):
            raise


@verb(
    "[--wait]",
    flags={"wait": bool, "no-wait": bool},
    tools=CTL,
    state=ANY,
    banner=lambda call: f"Shutting down RabbitMQ node {call.node.name} running at PID {_pid(call)}",
)
def shutdown(call: Call) -> str:
    """Stop the broker and wait for the end of its process."""
    name, pid = call.node.name, _pid(call)
    _stop(call, call.flags.get("timeout") or 300.0)
    return f"RabbitMQ node {name} running at PID {pid} successfully shut down"


def _pid(call: Call) -> str:
    return str(call.node.overview()["pid"])
