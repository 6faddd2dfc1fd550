"""The policies of one vhost: store them, and apply them to queues and exchanges.

A queue gets all effective settings, merged with its arguments, by `configure`, when it is declared
or restored and whenever a policy changes. For an exchange the alternate exchange is set: by
argument, else by policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harebell.base.durability import Durability, parse_durability
from harebell.base.patterns import PatternRefused
from harebell.base.ports import Store
from harebell.model.exchange import Exchange
from harebell.model.limits import POLICY_UNITS
from harebell.model.queue.arguments import queue_type
from harebell.model.queue.contract import Queue
from harebell.model.settings.policy import EXCHANGE, Policy, PolicyIndex, check_policy, merged
from harebell.model.settings.queue_settings import settings_of

if TYPE_CHECKING:
    from harebell.model.definitions import Recorder
    from harebell.model.queue_context import QueueContext

_ROWS = "policy"
_OPERATOR_ROWS = "parameter"
_COMPONENT = "operator_policy"
_Rules = tuple[Policy | None, dict[str, Any]]
"""A policy, and the settings that are in force with it."""


class Policies:
    """Policies and operator policies of one vhost.

    Args:
        vhost: its name.
        recorder: stores them.
        context: the queue context of the vhost.
        store: the store, which sets the durability of queues.

    Attributes:
        durability: durability of queues without a policy for it; "" for that of the broker.
        policies: policies by name.
        operator_policies: operator policies by name.
    """

    def __init__(self, vhost: str, recorder: Recorder, context: QueueContext, store: Store) -> None:
        self._vhost = vhost
        self._store = store
        self.durability = ""
        self._recorder = recorder
        self._context = context
        self.policies: dict[str, Policy] = {}
        self.operator_policies: dict[str, Policy] = {}
        self._index, self._operator_index = PolicyIndex(), PolicyIndex()
        # Queues and exchanges to configure, the next one last; whether later turns continue, and
        # whether they begin again at the end.
        self._unruled: list[Queue | Exchange] = []
        self._applying = self._again = False
        # How many imports are not done with the policies.
        self._holds = 0

    # --- changes --------------------------------------------------------------------------------

    def put(self, policy: Policy, *, operator: bool = False, strict: bool = True) -> None:
        """Add or replace a policy; refuse an invalid one.

        Args:
            policy: what replaces the policy of the same name.
            operator: whether it is an operator policy.
            strict: whether unknown settings are refused; otherwise they are kept.
        """
        check_policy(policy, operator=operator, strict=strict)
        fields = {
            "pattern": policy.pattern,
            "priority": policy.priority,
            "definition": dict(policy.definition),
        }
        if operator:
            value = {**fields, "apply-to": policy.apply_to}
            key = (self._vhost, _COMPONENT, policy.name)
            self._recorder.put(_OPERATOR_ROWS, key, {"value": value})
            self._recorder.events.parameter("set", key, value)
        else:
            fields["apply_to"] = policy.apply_to
            self._recorder.put(_ROWS, (self._vhost, policy.name), fields)
        self.take(policy, operator=operator)
        self._recorder.events.policy_set(self._vhost, policy)
        self.apply_all()

    def take(self, policy: Policy, *, operator: bool = False) -> None:
        """Add or replace a policy, without storing or applying it."""
        held, index = self._of(operator=operator)
        if policy.name in held:
            index.remove(held[policy.name])
        held[policy.name] = policy
        # One that was stored, and whose pattern this version does not know, applies to nothing.
        with suppress(PatternRefused):
            # Compiled here: else the first declare would compile all of them.
            policy.search  # noqa: B018
            index.add(policy)

    def _of(self, *, operator: bool) -> tuple[dict[str, Policy], PolicyIndex]:
        if operator:
            return self.operator_policies, self._operator_index
        return self.policies, self._index

    def delete(self, name: str, *, operator: bool = False) -> bool:
        """Delete a policy; False if there is none of that name."""
        held, index = self._of(operator=operator)
        if name not in held:
            return False
        self._unstore(name, operator=operator)
        index.remove(held.pop(name))
        self.apply_all()
        return True

    def unstore(self) -> None:
        """Remove the rows of all policies: the vhost is deleted."""
        for operator, held in ((False, self.policies), (True, self.operator_policies)):
            for name in held:
                self._unstore(name, operator=operator)

    def _unstore(self, name: str, *, operator: bool) -> None:
        if operator:
            key = (self._vhost, _COMPONENT, name)
            self._recorder.drop(_OPERATOR_ROWS, key)
            self._recorder.events.parameter("cleared", key)
        else:
            self._recorder.drop(_ROWS, (self._vhost, name))
        # RabbitMQ has an event for the end of an operator policy, and none for its start.
        what = "operator.policy.cleared" if operator else "policy.cleared"
        self._recorder.events.note(what, {"name": name, "vhost": self._vhost})

    # --- effective settings ---------------------------------------------------------------------

    def policy_of(self, resource: Queue | Exchange, *, operator: bool = False) -> Policy | None:
        """Return the policy that applies to a queue or an exchange."""
        return self._of(operator=operator)[1].first(_kind(resource), resource.name)

    def effective(self, resource: Queue | Exchange) -> dict[str, Any]:
        """Return the merged settings of the policies of a queue or an exchange."""
        return merged(self.policy_of(resource), self.policy_of(resource, operator=True))

    def changes(
        self, policy: Policy, *, operator: bool
    ) -> Iterator[tuple[Queue | Exchange, _Rules, _Rules]]:
        """Yield each queue and exchange with what applies now, and what would.

        That is each time the policy, and its settings merged with those of the operator policy.

        Args:
            policy: what would replace the policy of the same name; it is checked.
            operator: whether it is an operator policy.
        """
        check_policy(policy, operator=operator)
        index, work = self._of(operator=operator)[1], self._context.timers.work
        router = self._context.router
        resources: list[Queue | Exchange] = [*router.queues.values()]
        resources += router.exchanges.values()
        for resource in resources:
            spent = self._units()
            beside = self.policy_of(resource, operator=not operator)
            now, new = (
                (each, merged(beside, each) if operator else merged(each, beside))
                for each in (
                    self.policy_of(resource, operator=operator),
                    index.first(_kind(resource), resource.name, policy),
                )
            )
            work.charge(POLICY_UNITS + self._units() - spent)
            yield resource, now, new

    def settings_of(self, queue: Queue) -> dict[str, Any]:
        """Return the effective settings of a queue."""
        return settings_of(queue.arguments, self.effective(queue))

    def apply_all(self) -> None:
        """Apply the policies to all queues and exchanges, in several turns if they are many.

        Objects that are declared meanwhile get the new policies at once.
        """
        if self._applying or self._holds:
            # Not from the beginning now: the last objects would wait while policies change.
            self._again = True
            return
        self._begin()
        if not self._apply_some():
            self._applying = True
            self._context.timers.work.later(self._apply_more)

    def hold(self) -> None:
        """Apply what changes until `release` once, then."""
        self._holds += 1

    def release(self) -> None:
        """End one `hold`."""
        self._holds -= 1
        if self._again and not self._applying:
            self._again = False
            self.apply_all()

    def _begin(self) -> None:
        router = self._context.router
        # Taken from the end: exchanges first, each kind in the order of declaration.
        self._unruled = [*reversed(router.queues.values()), *reversed(router.exchanges.values())]

    def _apply_more(self) -> bool:
        if not self._apply_some():
            return False
        if self._again and not self._holds:
            self._again = False
            self._begin()
            return False
        self._applying = False
        return True

    def _units(self) -> int:
        """Return the work units of all searches for policies until now."""
        return self._index.units + self._operator_index.units

    def _apply_some(self) -> bool:
        """Apply the policies to some objects; True when all are done."""
        context, remaining = self._context, self._unruled
        work, routes = context.timers.work, False
        while remaining:
            resource, spent = remaining.pop(), self._units()
            if isinstance(resource, Queue):
                if not resource.deleted:
                    self.apply_to_queue(resource)
            else:
                self.apply_to_exchange(resource)
                routes = True
            if work.charge(POLICY_UNITS + self._units() - spent) and remaining:
                break
        if routes:
            # Alternate exchanges may have changed.
            context.router.changed()
        return not remaining

    def apply_to_exchange(self, exchange: Exchange) -> None:
        """Set the alternate exchange: by argument, else by policy."""
        alternate = exchange.arguments.get("alternate-exchange")
        if not isinstance(alternate, str):
            alternate = self.effective(exchange).get("alternate-exchange")
        exchange.alternate = alternate

    def apply_to_queue(self, queue: Queue) -> None:
        """Configure a queue by its arguments and policies."""
        policies = self.effective(queue)
        queue.configure(settings_of(queue.arguments, policies))
        # Nothing of a transient queue survives a restart: there is nothing to sync.
        if queue.durable:
            self._store.set_durability(queue.identity, self._durability(policies))

    def durability_of(self, queue: Queue) -> Durability:
        """Return the durability of a durable queue: by policy, else vhost, else broker."""
        return self._durability(self.effective(queue)) or self._store.durability

    def _durability(self, policies: Mapping[str, Any]) -> Durability | None:
        word = policies.get("durability") or self.durability
        return parse_durability(word) if word else None


def restore_policies(of: Callable[[str], Policies], store: Store) -> None:
    """Restore the stored policies, before there are queues and exchanges.

    Args:
        of: returns the policies of a vhost by its name.
        store: the store with the definitions.
    """
    for (vhost, name), fields in store.definitions.load(_ROWS):
        of(vhost).take(_restored(name, fields, fields["apply_to"]))
    for (vhost, component, name), fields in store.definitions.load(_OPERATOR_ROWS):
        if component == _COMPONENT:
            value = fields["value"]
            of(vhost).take(_restored(name, value, value["apply-to"]), operator=True)


def _restored(name: str, fields: Mapping[str, Any], apply_to: str) -> Policy:
    return Policy(name, fields["pattern"], apply_to, fields["priority"], fields["definition"])


def _kind(resource: Queue | Exchange) -> str:
    return queue_type(resource.arguments) if isinstance(resource, Queue) else EXCHANGE
