"""Events of the broker, published to the exchange `amq.rabbitmq.event` of the first vhost.

    routing key   queue.created, exchange.deleted, binding.created, connection.closed, user.created
                  and so on, as in RabbitMQ's event exchange
    headers       facts of the event, user_who_performed_action, timestamp_in_ms
    properties    delivery-mode 2, timestamp in seconds; the body is empty

Events are gathered during an operation and published after it, so that consumers see the state
after the operation. While nothing is bound to the exchange, no events are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harebell.base.failures import Failures
from harebell.base.values import Long

if TYPE_CHECKING:
    from harebell.base.clock import Clock
    from harebell.model.binding import Binding
    from harebell.model.editor import Editor
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.router import Router
    from harebell.model.settings.policy import Policy

EVENT_EXCHANGE = "amq.rabbitmq.event"
INTERNAL_USER = "rmq-internal"
"""The actor of timers and of the broker itself."""
TOOL_USER = "rmq-cli"
"""The actor of the control socket."""
_MS = 1000
_DURABLE = 2


def _formatted(value: Any) -> Any:
    """Return a value as the headers of events have it: integers are long, tables are tables."""
    if value is None:
        return ""
    if isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return Long(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_formatted(each) for each in value]
    return value


def without_tables(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers of an event that cannot be nested too deeply."""
    return {name: v for name, v in headers.items() if not isinstance(v, dict | list)}


class Events:
    """Gathers and publishes events.

    Args:
        editor: composes messages.
        clock: the time of day.
        node: the name of the broker.
        failures: counts events that cannot be published; the others are.

    Attributes:
        actor: the name of the user who acts now.
        waiting: events that are not published yet: routing key and headers.
        elsewhere: publishes events at the broker that has the first vhost of a cluster, called with
            routing key and headers; None if this one has it, or nothing is bound there.
        source: the connection whose input was handled last; None for none.
        audit: takes what AMQP has changed, or may not: the routing key of its event, the facts of
            the object, and why it is refused; None if nothing takes that.
    """

    def __init__(
        self, editor: Editor, clock: Clock, node: str, failures: Failures | None = None
    ) -> None:
        self._editor = editor
        self._failures = Failures() if failures is None else failures
        self._clock = clock
        self.node = node
        self.actor = INTERNAL_USER
        self.waiting: list[tuple[str, dict[str, Any]]] = []
        self.source: Any = None
        self.audit: Callable[[str, Mapping[str, Any], str], None] | None = None
        self.elsewhere: Callable[[str, Mapping[str, Any]], None] | None = None
        self._router: Router | None = None
        self._exchange: Exchange | None = None
        self._alarms: frozenset[str] = frozenset()

    def attach(self, router: Router) -> None:
        """Publish to the event exchange of this router's vhost from now on."""
        self._router = router
        self._exchange = router.exchanges[EVENT_EXCHANGE]

    @property
    def wanted(self) -> bool:
        """Whether anything is bound to the event exchange."""
        return self.elsewhere is not None or self.bound

    @property
    def bound(self) -> bool:
        """Whether anything is bound to it in this broker."""
        return self._exchange is not None and bool(self._exchange.bindings)

    def note(self, key: str, facts: Mapping[str, Any]) -> None:
        """Add an event.

        Args:
            key: the routing key.
            facts: the headers except user and time.
        """
        # Mostly nothing is bound, and an event costs nothing.
        if self.wanted:
            headers = {name: _formatted(value) for name, value in facts.items()}
            headers["user_who_performed_action"] = self.actor
            headers["timestamp_in_ms"] = Long(self._clock.ms)
            self.waiting.append((key, headers))

    def publish(self) -> None:
        """Publish the gathered events."""
        # Taken first: publishing may cause further events, which are for the next call.
        waiting, self.waiting = self.waiting, []
        put = self.elsewhere or self._put
        for key, headers in waiting:
            self._failures.guard(put, key, headers)

    def take(self, key: str, headers: Mapping[str, Any]) -> None:
        """Publish an event of another broker of the cluster."""
        if self.bound:
            self._put(key, {name: _formatted(value) for name, value in headers.items()})

    def _put(self, key: str, headers: Mapping[str, Any]) -> None:
        if self._router is None or self._exchange is None:
            return
        self._router.send(self._exchange, self._composed(key, headers))

    def _composed(self, key: str, headers: Mapping[str, Any]) -> Any:
        moment = datetime.fromtimestamp(headers["timestamp_in_ms"] // _MS, UTC)
        properties = {"headers": headers, "delivery_mode": _DURABLE, "timestamp": moment}
        try:
            return self._editor.composed(EVENT_EXCHANGE, key, b"", properties)
        except (TypeError, ValueError):
            # A client's table may have the maximum depth already, so it cannot be nested.
            properties["headers"] = without_tables(headers)
            return self._editor.composed(EVENT_EXCHANGE, key, b"", properties)

    # --- declarations ---------------------------------------------------------------------------

    def exchange_made(self, vhost: str, exchange: Exchange) -> None:
        """Add exchange.created."""
        facts = self._exchange_facts(vhost, exchange)
        self.record("exchange.created", facts)
        self.note("exchange.created", facts)

    def exchange_gone(self, vhost: str, exchange: Exchange) -> None:
        """Add exchange.deleted."""
        self.record("exchange.deleted", self._exchange_facts(vhost, exchange))
        self.gone("exchange", vhost, exchange.name)

    def _exchange_facts(self, vhost: str, exchange: Exchange) -> dict[str, Any]:
        return {
            "name": exchange.name,
            "vhost": vhost,
            "type": exchange.KIND,
            "durable": bool(exchange.durable),
            "auto_delete": bool(exchange.auto_delete),
            "internal": bool(exchange.internal),
            "arguments": exchange.arguments,
        }

    def queue_made(self, vhost: str, queue: Queue) -> None:
        """Add queue.created."""
        facts = self._queue_facts(vhost, queue)
        self.record("queue.created", facts)
        self.note("queue.created", facts)

    def queue_gone(self, vhost: str, queue: Queue) -> None:
        """Add queue.deleted."""
        self.record("queue.deleted", self._queue_facts(vhost, queue))
        self.gone("queue", vhost, queue.name)

    def _queue_facts(self, vhost: str, queue: Queue) -> dict[str, Any]:
        return {
            "name": queue.name,
            "vhost": vhost,
            "type": "classic" if queue.kind == "priority" else queue.kind,
            "durable": bool(queue.durable),
            "auto_delete": bool(queue.auto_delete),
            "exclusive": queue.owner is not None,
            "arguments": queue.arguments,
        }

    def record(self, key: str, facts: Mapping[str, Any], refusal: str = "") -> None:
        """Have the audit trail take an act: see `audit`."""
        if self.audit is not None:
            self.audit(key, facts, refusal)

    def gone(self, what: str, vhost: str, name: str) -> None:
        """Add the deletion of an exchange, a queue or another object."""
        self.note(f"{what}.deleted", {"name": name, "vhost": vhost})

    def binding(self, change: str, vhost: str, binding: Binding) -> None:
        """Add the creation ("created") or removal ("deleted") of a binding."""
        to_exchange = hasattr(binding.destination, "bindings")
        facts = {
            "source_name": binding.source.name,
            "source_kind": "exchange",
            "destination_name": binding.destination.name,
            "destination_kind": "exchange" if to_exchange else "queue",
            "routing_key": binding.routing_key,
            "arguments": binding.arguments,
            "vhost": vhost,
        }
        end = binding.destination
        if not end.auto_delete and getattr(end, "owner", None) is None:
            self.record(f"binding.{change}", facts)
        self.note(f"binding.{change}", facts)

    def policy_set(self, vhost: str, policy: Policy) -> None:
        """Add the change of a policy or operator policy."""
        facts = {
            "name": policy.name,
            "vhost": vhost,
            "pattern": policy.pattern,
            "apply-to": policy.apply_to,
            "definition": policy.definition,
            "priority": policy.priority,
        }
        self.note("policy.set", facts)

    def parameter(self, change: str, key: tuple[str, str, str], value: Any = None) -> None:
        """Add the change of a parameter: "set" or "cleared".

        Args:
            change: which of the two.
            key: its vhost ("" for a global one), component and name.
            value: the new one.
        """
        vhost, component, name = key
        facts = {"component": component, "name": name}
        if vhost:
            facts["vhost"] = vhost
        if change == "set":
            facts["value"] = value
        self.note(f"parameter.{change}", facts)

    # --- the broker itself ----------------------------------------------------------------------

    def alarms(self, short: Iterable[str]) -> None:
        """Add an event for each alarm that was set or cleared since the last call."""
        now = frozenset(short)
        for source in sorted(now - self._alarms):
            self.note("alarm.set", {"source": source, "node": self.node})
        for source in sorted(self._alarms - now):
            self.note("alarm.cleared", {"source": source, "node": self.node})
        self._alarms = now
