"""`list_queues` and the other lists of what is in a vhost or connected to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harebell_rabbitmq_compat.tables import Arguments, Rows, column_names
from harebell_rabbitmq_compat.verb import Call, verb

Read = Callable[[Mapping[str, Any]], Any]

_QUEUE_COLUMNS = (
    *("name", "durable", "auto_delete", "arguments", "policy", "operator_policy"),
    *("effective_policy_definition", "pid", "mirror_pids", "synchronised_mirror_pids"),
    *("slave_pids", "synchronised_slave_pids", "owner_pid", "exclusive"),
    *("exclusive_consumer_pid", "exclusive_consumer_tag", "messages_ready"),
    *("messages_unacknowledged", "messages", "messages_ready_ram"),
    *("messages_unacknowledged_ram", "messages_ram", "messages_persistent", "message_bytes"),
    *("message_bytes_ready", "message_bytes_unacknowledged", "message_bytes_ram"),
    *("message_bytes_persistent", "head_message_timestamp", "disk_reads", "disk_writes"),
    *("consumers", "consumer_utilisation", "consumer_capacity", "memory", "state", "type"),
    *("leader", "members", "online"),
    # Columns that only Harebell has.
    *("messages_delayed", "messages_leased", "durability", "owner"),
)
_EXCHANGE_COLUMNS = (
    *("name", "type", "durable", "auto_delete", "internal", "arguments", "policy"),
)
_BINDING_COLUMNS = (
    *("source_name", "source_kind", "destination_name", "destination_kind", "routing_key"),
    "arguments",
)
_CONNECTION_COLUMNS = (
    *("pid", "name", "port", "host", "peer_port", "peer_host", "ssl", "ssl_protocol"),
    *("ssl_key_exchange", "ssl_cipher", "ssl_hash", "peer_cert_subject", "peer_cert_issuer"),
    *("peer_cert_validity", "state", "channels", "protocol", "auth_mechanism", "user", "vhost"),
    *("timeout", "frame_max", "channel_max", "client_properties", "recv_oct", "recv_cnt"),
    *("send_oct", "send_cnt", "send_pend", "connected_at"),
)
_CHANNEL_COLUMNS = (
    *("pid", "connection", "name", "number", "user", "vhost", "transactional", "confirm"),
    *("consumer_count", "messages_unacknowledged", "messages_uncommitted", "acks_uncommitted"),
    *("messages_unconfirmed", "prefetch_count", "global_prefetch_count"),
)
_CONSUMER_COLUMNS = (
    *("queue_name", "channel_pid", "consumer_tag", "ack_required", "prefetch_count", "active"),
    *("activity_status", "arguments"),
)


def selected(
    call: Call,
    rows: Iterable[Mapping[str, Any]],
    default: Sequence[str],
    special: Mapping[str, Read],
) -> Rows:
    """Choose the columns that the arguments name.

    Args:
        call: the verb with its arguments.
        rows: rows of the broker.
        default: the columns without arguments.
        special: how to read columns that the rows of the broker do not have under this name.
    """
    columns = column_names(call.arguments) or list(default)
    shown = [{name: _cell(row, name, special) for name in columns} for row in rows]
    return Rows(columns, shown)


def _cell(row: Mapping[str, Any], name: str, special: Mapping[str, Read]) -> Any:
    value = special[name](row) if name in special else row.get(name)
    if isinstance(value, dict) and name in ("arguments", "client_properties"):
        return Arguments(value)
    return value


def _in_vhost(call: Call, command: str) -> list[dict[str, Any]]:
    """Return the rows of the vhost; none if there is no such vhost, as RabbitMQ does."""
    if "vhost" in call.flags and not call.has_vhost(call.vhost):
        return []
    rows: list[dict[str, Any]] = call.ask(command, vhost=call.vhost)
    return rows


@verb(
    "[--vhost <vhost>] [--online] [--offline] [--local] [--no-table-headers] [<column>, ...] "
    "[--timeout <timeout>]",
    columns=_QUEUE_COLUMNS,
    banner="Listing queues for vhost {vhost} ...",
    seconds=60.0,
)
def list_queues(call: Call) -> Rows:
    """Print queues, with their names and messages unless columns are given."""
    rows = _in_vhost(call, "queues.list")
    if call.flags.get("offline") and not call.flags.get("online"):
        rows = []  # a queue of a running broker is running
    special: dict[str, Read] = {
        "owner_pid": lambda row: row.get("owner", ""),
        "pid": lambda row: call.node.name,
        "leader": lambda row: call.node.name,
        "members": lambda row: [],
        "online": lambda row: [],
        "mirror_pids": lambda row: "",
    }
    return selected(call, rows, ("name", "messages"), special)


@verb(
    "[--vhost <vhost>] [--no-table-headers] [<column>, ...]",
    columns=_EXCHANGE_COLUMNS,
    banner="Listing exchanges for vhost {vhost} ...",
)
def list_exchanges(call: Call) -> Rows:
    """Print exchanges of a vhost."""
    rows = _in_vhost(call, "exchanges.list")
    return selected(call, rows, ("name", "type"), {})


@verb(
    "[--vhost <vhost>] [--no-table-headers] [<column>, ...]",
    columns=_BINDING_COLUMNS,
    banner="Listing bindings for vhost {vhost}...",
)
def list_bindings(call: Call) -> Rows:
    """Print bindings of a vhost."""
    rows = _in_vhost(call, "bindings.list")
    special: dict[str, Read] = {
        "source_name": lambda row: row.get("source_name", row.get("source", "")),
        "source_kind": lambda row: "exchange",
        "destination_name": lambda row: row.get("destination_name", row.get("destination", "")),
        "destination_kind": lambda row: row.get("destination_kind", row.get("destination_type")),
    }
    return selected(call, rows, _BINDING_COLUMNS, special)


def _protocol(row: Mapping[str, Any]) -> Any:
    """Write "AMQP 0-9-1" as RabbitMQ does: {0,9,1}."""
    version = str(row.get("protocol", "")).removeprefix("AMQP ")
    return "{" + version.replace("-", ",") + "}" if version else ""


@verb(
    "[--no-table-headers] [<column>, ...]",
    columns=_CONNECTION_COLUMNS,
    banner="Listing connections ...",
)
def list_connections(call: Call) -> Rows:
    """Print connections; the column pid is what close_connection takes."""
    special: dict[str, Read] = {"pid": lambda row: row["name"], "protocol": _protocol}
    return selected(
        call,
        call.ask("connections.list"),
        ("user", "peer_host", "peer_port", "state"),
        special,
    )


@verb(
    "[--no-table-headers] [<column>, ...]", columns=_CHANNEL_COLUMNS, banner="Listing channels ..."
)
def list_channels(call: Call) -> Rows:
    """Print channels of all connections."""
    special: dict[str, Read] = {
        "pid": lambda row: row["name"],
        "connection": lambda row: str(row["name"]).rpartition(" (")[0],
    }
    return selected(
        call,
        call.ask("channels.list"),
        ("pid", "user", "consumer_count", "messages_unacknowledged"),
        special,
    )


@verb(
    "[--vhost <vhost>] [--no-table-headers] [<column>, ...]",
    columns=_CONSUMER_COLUMNS,
    banner="Listing consumers in vhost {vhost} ...",
)
def list_consumers(call: Call) -> Rows:
    """Print consumers of a vhost."""
    rows = _in_vhost(call, "consumers.list")
    special: dict[str, Read] = {
        "queue_name": lambda row: row.get("queue_name") or (row.get("queue") or {}).get("name"),
        "channel_pid": _channel_of,
        "active": lambda row: row.get("active", True),
        "activity_status": lambda row: row.get("activity_status", "up"),
    }
    default = tuple(name for name in _CONSUMER_COLUMNS if name != "activity_status")
    return selected(call, rows, default, special)


def _channel_of(row: Mapping[str, Any]) -> str:
    return str(row.get("channel") or (row.get("channel_details") or {}).get("name", ""))


@verb(
    "[--vhost <vhost>] [--queue-timeout <milliseconds>] [<column> ...]",
    flags={"queue-timeout": int},
    banner="Listing unresponsive queues for vhost {vhost} ...",
)
def list_unresponsive_queues(call: Call) -> Rows:
    """Print queues that do not answer: none while the broker answers."""
    call.node.overview()  # the queues are in the process that answers
    return Rows(["name"], [])
