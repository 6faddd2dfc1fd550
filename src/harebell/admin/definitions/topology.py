"""Import vhosts, parameters, policies, queues, exchanges and bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harebell.admin.context import checked_name, checked_table, checked_value
from harebell.admin.definitions.entries import (
    BindingEntry,
    DefinitionsError,
    ExchangeEntry,
    GlobalParameterEntry,
    ImportTarget,
    ParameterEntry,
    PolicyEntry,
    QueueEntry,
    VHostEntry,
    pairs,
    words,
)
from harebell.admin.limits import PARAMETER_NAME_BYTES, POLICY_NAME_BYTES, VHOST_NAME_BYTES
from harebell.front.operations.bind import BindingRequest, bind
from harebell.front.operations.caller import Caller, Operator
from harebell.front.operations.declare import (
    ExchangeOptions,
    QueueOptions,
    declare_exchange,
    declare_queue,
)
from harebell.model.broker import Broker
from harebell.model.events import TOOL_USER
from harebell.model.exchange import Exchange
from harebell.model.queue.contract import Queue
from harebell.model.settings.metadata import Metadata
from harebell.model.settings.policy import Policy, unknown_settings
from harebell.model.settings.vhost_limits import COMPONENT, NAME, unknown_limits
from harebell.model.vhost import PREDECLARED, VHost

_OPERATOR = "operator_policy"
_TYPE = "x-queue-type"
_TYPES = {
    "rabbit_classic_queue": "classic",
    "rabbit_quorum_queue": "quorum",
    "rabbit_stream_queue": "stream",
    "undefined": "",
}
"""Queue types in the notation of some versions of RabbitMQ."""
_GENERATED = "amq.gen-"


class _Value(msgspec.Struct, kw_only=True):
    """An operator policy in the value of a parameter."""

    pattern: str
    definition: dict[str, Any] | list[Any]
    apply_to: str = msgspec.field(name="apply-to", default="all")
    priority: int = 0


def _vhost(broker: Broker, name: str) -> VHost:
    vhost = broker.vhosts.get(name)
    if vhost is None:
        raise ValueError(f"there is no vhost '{name}'")
    return vhost


def _text(value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"the {what} is {value!r}, which is no text")


def import_vhost(target: ImportTarget, entry: VHostEntry) -> list[str]:
    """Create a vhost or update its metadata; return sentences about settings without effect.

    What the entry does not name stays as it is.
    """
    name = checked_name(entry.name, "vhost", VHOST_NAME_BYTES)
    vhost = target.broker.vhosts.get(name)
    metadata = _metadata(Metadata() if vhost is None else vhost.metadata, entry)
    if vhost is None:
        vhost = target.broker.add_vhost(name, metadata)
    elif vhost.metadata != metadata:
        vhost.set_metadata(metadata)
    limits = pairs(entry.limits)
    if limits:
        vhost.parameters.put(COMPONENT, NAME, limits, strict=False)
    return _ineffective_limits(limits)


def _metadata(before: Metadata, entry: VHostEntry) -> Metadata:
    """Replace in metadata what an entry names."""
    more = pairs(entry.metadata)
    given = {
        **{key: more.get(key) for key in ("description", "tags", "default_queue_type")},
        **{key: value for key, value in msgspec.structs.asdict(entry).items() if value is not None},
    }
    fields = ("description", "tags", "default_queue_type", "tracing", "durability")
    named = {key: given[key] for key in fields if given.get(key) is not None}
    if "description" in named:
        named["description"] = _text(named["description"], "description")
    if "tags" in named:
        named["tags"] = words(named["tags"])
    if "default_queue_type" in named:
        kind = _text(named["default_queue_type"], "default queue type")
        named["default_queue_type"] = _TYPES.get(kind, kind)
    return msgspec.structs.replace(before, **named)


def _ineffective_limits(limits: Any) -> list[str]:
    return [f"the limit '{name}' has no effect" for name in unknown_limits(limits)]


def check_room(broker: Broker, name: str, count: int) -> None:
    """Check the queue limit of a vhost before the import, as RabbitMQ does.

    Raises:
        DefinitionsError: `count` more queues would exceed the limit.
    """
    vhost = broker.vhosts.get(name)
    limit = None if vhost is None else vhost.queue_limit(count)
    if vhost is not None and limit is not None:
        have = len(vhost.queues)
        raise DefinitionsError(
            f'Adding {count} queue(s) to virtual host "{name}" would exceed the limit of '
            f"{limit} queue(s). This virtual host currently has {have} queue(s) defined. Import "
            "aborted!"
        )


def import_parameter(broker: Broker, entry: ParameterEntry) -> list[str]:
    """Create or replace a parameter or an operator policy.

    Returns:
        Sentences about settings without effect.
    """
    vhost = _vhost(broker, entry.vhost)
    if entry.component == _OPERATOR:
        operators = msgspec.convert(entry.value, _Value)
        return _put_policy(vhost, entry.name, operators, operator=True)
    value = entry.value
    if entry.component == COMPONENT and isinstance(value, list):
        value = pairs(value)
    component = checked_name(entry.component, "component", PARAMETER_NAME_BYTES)
    name = checked_name(entry.name, "parameter", PARAMETER_NAME_BYTES)
    vhost.parameters.put(component, name, checked_value(name, value), strict=False)
    if component != COMPONENT:
        return [f"the component '{component}' has no effect"]
    return _ineffective_limits(value)


def import_global_parameter(target: ImportTarget, entry: GlobalParameterEntry) -> None:
    """Create or replace a global parameter."""
    name = checked_name(entry.name, "parameter", PARAMETER_NAME_BYTES)
    target.broker.global_parameters.put(name, checked_value(name, entry.value))


def import_policy(broker: Broker, entry: PolicyEntry) -> list[str]:
    """Create or replace a policy; return sentences about settings without effect."""
    return _put_policy(_vhost(broker, entry.vhost), entry.name, entry, operator=False)


def _put_policy(
    vhost: VHost, name: str, given: PolicyEntry | _Value, *, operator: bool
) -> list[str]:
    checked_name(name, "policy", POLICY_NAME_BYTES)
    definition = checked_value(name, pairs(given.definition), "definition of policy")
    policy = Policy(name, given.pattern, given.apply_to, given.priority, definition)
    vhost.policies.put(policy, operator=operator, strict=False)
    unknown = unknown_settings(policy, operator=operator)
    return [f"the setting '{each}' has no effect" for each in unknown]


def _arguments(entry: QueueEntry | ExchangeEntry | BindingEntry) -> Mapping[str, Any]:
    return checked_table(pairs(entry.arguments), "the arguments")


def _caller(vhost: VHost) -> Caller:
    """Return the caller of an import: who may import may declare everything, as with RabbitMQ."""
    return Caller(vhost, Operator(TOOL_USER), None, lambda level, line: None)


def import_queue(broker: Broker, entry: QueueEntry) -> None:
    """Declare a queue unless there is one of that name."""
    vhost = _vhost(broker, entry.vhost)
    name = checked_name(entry.name, "queue", VHOST_NAME_BYTES)
    if name in vhost.queues:
        return
    arguments = dict(_arguments(entry))
    made_up = name.startswith(_GENERATED)
    kind = _TYPES.get(entry.type, entry.type) or ("classic" if made_up else "")
    if kind and (kind != "classic" or vhost.default_queue_type or vhost.broker_queue_type):
        # A queue that was classic stays classic, whatever the default type is here.
        arguments.setdefault(_TYPE, kind)
    options = QueueOptions(
        durable=entry.durable,
        auto_delete=entry.auto_delete,
        arguments=arguments,
        generated=made_up,
    )
    declare_queue(_caller(vhost), name, options)


def import_exchange(broker: Broker, entry: ExchangeEntry) -> None:
    """Declare an exchange unless there is one of that name."""
    vhost = _vhost(broker, entry.vhost)
    if entry.name in vhost.exchanges or entry.name in PREDECLARED:
        return
    name = checked_name(entry.name, "exchange", VHOST_NAME_BYTES)
    options = ExchangeOptions(entry.durable, entry.auto_delete, entry.internal, _arguments(entry))
    declare_exchange(_caller(vhost), name, entry.type, options)


def _destinations(vhost: VHost, kind: str) -> Mapping[str, Queue | Exchange]:
    if kind == "queue":
        return vhost.queues
    if kind == "exchange":
        return vhost.exchanges
    raise ValueError(f"the destination type '{kind}' is unknown: it is queue or exchange")


def missing_end(broker: Broker, entry: BindingEntry) -> str:
    """Return the missing source or destination of a binding; "" if both exist."""
    vhost = _vhost(broker, entry.vhost)
    if entry.source not in vhost.exchanges:
        return f"exchange '{entry.source}'"
    if entry.destination not in _destinations(vhost, entry.destination_type):
        return f"{entry.destination_type} '{entry.destination}'"
    return ""


def import_binding(broker: Broker, entry: BindingEntry) -> None:
    """Create a binding unless an equal one exists; source and destination must exist."""
    vhost = _vhost(broker, entry.vhost)
    if entry.source == "":
        return  # every queue is bound to the default exchange
    wanted = BindingRequest(
        entry.destination_type,
        entry.destination,
        entry.source,
        entry.routing_key,
        _arguments(entry),
    )
    bind(_caller(vhost), wanted)
