"""What happens in the broker, told on the exchange `amq.rabbitmq.event` of the first vhost.

    routing key   queue.created, exchange.deleted, binding.created, connection.closed, user.created
                  and so on, as RabbitMQ's event exchange has them
    headers       what it is about, user_who_performed_action, timestamp_in_ms
    properties    delivery-mode 2, timestamp in seconds; the body is empty

Events gather while something is done and are told when it is done, so that whoever hears of them
finds things as they were left. While nothing is bound to the exchange none are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harebell.base.values import Long

if TYPE_CHECKING:
    from harebell.base.clock import Clock
    from harebell.model.binding import Binding
    from harebell.model.editor import Editor
    from harebell.model.exchange.kind import Exchange
    from harebell.model.policy import Policy
    from harebell.model.queue.contract import Queue
    from harebell.model.router import Router

EVENT_EXCHANGE = "amq.rabbitmq.event"
INTERNAL_USER = "rmq-internal"
"""Who acts when nobody does: time, or the broker itself."""
TOOL_USER = "rmq-cli"
"""Who acts through the control socket."""
_MS = 1000
_DURABLE = 2


def _formatted(value: Any) -> Any:
    """A value as the headers of events have it: integers are long, tables are tables."""
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


class Events:
    """Gathers events, and tells them.

    Args:
        editor: composes messages.
        clock: the time of day.
        node: the name of the broker.

    Attributes:
        actor: the name of the user who acts now.
        waiting: events that are not told yet: routing key and headers.
    """

    def __init__(self, editor: Editor, clock: Clock, node: str) -> None:
        self._editor = editor
        self._clock = clock
        self.node = node
        self.actor = INTERNAL_USER
        self.waiting: list[tuple[str, dict[str, Any]]] = []
        self._router: Router | None = None
        self._exchange: Exchange | None = None
        self._alarms: frozenset[str] = frozenset()

    def attach(self, router: Router) -> None:
        """From now on there is the exchange, in the vhost of this router."""
        self._router = router
        self._exchange = router.exchanges[EVENT_EXCHANGE]

    @property
    def wanted(self) -> bool:
        """Whether anything is bound to the exchange."""
        return self._exchange is not None and bool(self._exchange.bindings)

    def note(self, key: str, facts: Mapping[str, Any]) -> None:
        """Something happened.

        Args:
            key: the routing key.
            facts: the headers beside who did it and when.
        """
        if self.wanted:
            headers = {name: _formatted(value) for name, value in facts.items()}
            headers["user_who_performed_action"] = self.actor
            headers["timestamp_in_ms"] = Long(self._clock.ms)
            self.waiting.append((key, headers))

    def tell(self) -> None:
        """Publish what waits."""
        waiting, self.waiting = self.waiting, []
        if self._router is None or self._exchange is None:
            return
        for key, headers in waiting:
            message = self._composed(key, headers)
            for queue in self._router.route(self._exchange, message):
                queue.publish(message)

    def _composed(self, key: str, headers: dict[str, Any]) -> Any:
        moment = datetime.fromtimestamp(headers["timestamp_in_ms"] // _MS, UTC)
        properties = {"headers": headers, "delivery_mode": _DURABLE, "timestamp": moment}
        try:
            return self._editor.composed(EVENT_EXCHANGE, key, b"", properties)
        except (TypeError, ValueError):
            # A client's table goes as deep as tables may, and cannot stand inside another.
            flat = {name: v for name, v in headers.items() if not isinstance(v, dict | list)}
            properties["headers"] = flat
            return self._editor.composed(EVENT_EXCHANGE, key, b"", properties)

    # --- what is declared -----------------------------------------------------------------------

    def exchange_made(self, vhost: str, exchange: Exchange) -> None:
        """An exchange was declared."""
        facts = {
            "name": exchange.name,
            "vhost": vhost,
            "type": exchange.KIND,
            "durable": bool(exchange.durable),
            "auto_delete": bool(exchange.auto_delete),
            "internal": bool(exchange.internal),
            "arguments": exchange.arguments,
        }
        self.note("exchange.created", facts)

    def queue_made(self, vhost: str, queue: Queue) -> None:
        """A queue was declared."""
        facts = {
            "name": queue.name,
            "vhost": vhost,
            "type": "classic" if queue.kind == "priority" else queue.kind,
            "durable": bool(queue.durable),
            "auto_delete": bool(queue.auto_delete),
            "exclusive": queue.owner is not None,
            "arguments": queue.arguments,
        }
        self.note("queue.created", facts)

    def gone(self, what: str, vhost: str, name: str) -> None:
        """An exchange, a queue or the like was deleted."""
        self.note(f"{what}.deleted", {"name": name, "vhost": vhost})

    def binding(self, change: str, vhost: str, binding: Binding) -> None:
        """A binding was made ("created") or removed ("deleted")."""
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
        self.note(f"binding.{change}", facts)

    def policy_set(self, vhost: str, policy: Policy) -> None:
        """A policy or operator policy is new or other than before."""
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
        """A parameter has another value ("set") or none any more ("cleared").

        Args:
            change: what happened.
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
        """What is short now; what changed since the last time is told."""
        now = frozenset(short)
        for source in sorted(now - self._alarms):
            self.note("alarm.set", {"source": source, "node": self.node})
        for source in sorted(self._alarms - now):
            self.note("alarm.cleared", {"source": source, "node": self.node})
        self._alarms = now
