"""Policies: settings for queues and exchanges whose names match a pattern.

Each key is a row of `KEYS`: valid values, queue types that know it, and how an operator policy is
merged with an ordinary one. The error texts are those of RabbitMQ, Erlang terms included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import Struct

from harebell.base.durability import parse_durability
from harebell.base.limits import NAME_BYTES
from harebell.base.pattern_index import Clause, PatternIndex, Rank, clauses_of, fits
from harebell.base.patterns import (
    PatternRefused,
    PatternTooCostly,
    Search,
    SearchBudget,
    found_by,
    found_within,
    search_for,
)
from harebell.model.equivalence import term
from harebell.model.limits import STREAM_SEGMENT_MAX_BYTES, TIER_CHARACTERS
from harebell.model.queue.arguments import (
    CLASSIC,
    QUORUM,
    STREAM,
    retry_delays,
    routing_key_fits,
)
from harebell.model.queue.offsets import span_ms
from harebell.model.resource import precondition

EXCHANGE = "exchange"
APPLY_TO = {
    "all": (EXCHANGE, CLASSIC, QUORUM, STREAM),
    "exchanges": (EXCHANGE,),
    "queues": (CLASSIC, QUORUM, STREAM),
    "classic_queues": (CLASSIC,),
    "quorum_queues": (QUORUM,),
    "streams": (STREAM,),
}
"""The kinds of objects for each value of apply-to."""

Merge = Callable[[Any, Any], Any]
"""Merges the values of a policy and of an operator policy, in this order."""


def _operators(value: Any, operator: Any) -> Any:
    return operator


def finite(value: int, operator: int) -> int:
    """Return the smaller limit; a negative one is no limit."""
    if value < 0 or operator < 0:
        return max(value, operator)
    return min(value, operator)


def _durability(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(parse_durability(value))
    except ValueError:
        return False


class Key(NamedTuple):
    """A setting of policies.

    Args:
        kinds: queue types that know it; a policy with it does not apply to queues of other types.
        fits: returns whether a value is valid.
        what: the expected value, for the error text.
        merge: how an operator policy limits it; None if operator policies may not have it.
    """

    kinds: tuple[str, ...]
    fits: Callable[[Any], bool]
    what: str
    merge: Merge | None = None


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _routing_key(value: Any) -> bool:
    return isinstance(value, str) and routing_key_fits(value)


def _at_least(minimum: int) -> Callable[[Any], bool]:
    def fits(value: Any) -> bool:
        # True is an int in Python, and no number in JSON.
        return isinstance(value, int) and not isinstance(value, bool) and value >= minimum

    return fits


def _within(minimum: int, maximum: int) -> Callable[[Any], bool]:
    return lambda value: _at_least(minimum)(value) and value <= maximum


def _one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in words


def _anything(value: Any) -> bool:
    return True


def _age(value: Any) -> bool:
    return isinstance(value, str) and bool(span_ms(value))


def _name_of_tier(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= TIER_CHARACTERS


_BOTH = (CLASSIC, QUORUM)
MIRRORS = (
    *("ha-mode", "ha-params", "ha-sync-mode", "ha-sync-batch-size", "ha-promote-on-shutdown"),
    "ha-promote-on-failure",
)
"""Settings of mirrored queues, which RabbitMQ 4.0 removed; definitions of 3.13 often have them."""
_MIRRORED = (CLASSIC,)
_ALL = (CLASSIC, QUORUM, STREAM)
_ANY = -(2**63)
_SHOWN = 20
_NUMBER_MAX = 2**63 - 1
KEYS: dict[str, Key] = {
    "alternate-exchange": Key((EXCHANGE, *_ALL), _text, "a valid alternate exchange name"),
    "dead-letter-exchange": Key(_BOTH, _text, "a valid dead letter exchange name"),
    "dead-letter-routing-key": Key(
        _BOTH, _routing_key, f"a valid dead letter routing key of at most {NAME_BYTES} bytes"
    ),
    "dead-letter-strategy": Key(
        (QUORUM,), _one_of("at-most-once", "at-least-once"), "a valid dead letter strategy"
    ),
    "retry": Key(_BOTH, retry_delays, "a list of delays in milliseconds"),
    "delayed-retry-type": Key(
        (QUORUM,),
        _one_of("disabled", "all", "failed", "returned"),
        "a valid delayed retry type",
    ),
    # An operator narrows the range from both ends, as in RabbitMQ.
    "delayed-retry-min": Key((QUORUM,), _at_least(0), "a valid delayed retry minimum", max),
    "delayed-retry-max": Key((QUORUM,), _at_least(0), "a valid delayed retry maximum", min),
    "message-ttl": Key(_BOTH, _at_least(0), "a valid message TTL", min),
    "expires": Key(_BOTH, _at_least(1), "a valid queue expiry", min),
    "max-length": Key(_BOTH, _at_least(0), "a valid maximum length", min),
    "max-length-bytes": Key(_ALL, _at_least(0), "a valid maximum length in bytes", min),
    "overflow": Key(
        _BOTH,
        _one_of("drop-head", "reject-publish", "reject-publish-dlx"),
        "a valid overflow value",
        _operators,
    ),
    "delivery-limit": Key((QUORUM,), _at_least(_ANY), "a valid delivery limit", finite),
    "max-in-memory-length": Key((QUORUM,), _at_least(0), "a valid maximum memory in bytes", min),
    "max-in-memory-bytes": Key((QUORUM,), _at_least(0), "a valid maximum memory in bytes", min),
    "queue-mode": Key((CLASSIC,), _one_of("default", "lazy"), "a valid queue-mode value"),
    "queue-version": Key((CLASSIC,), _within(1, 2), "a valid queue-version value", _operators),
    "queue-master-locator": Key(
        (CLASSIC,), _one_of("client-local", "min-masters", "random"), "a valid master locator"
    ),
    "queue-leader-locator": Key(
        _ALL,
        _one_of("client-local", "balanced", "random", "least-leaders"),
        "a valid queue leader locator value",
    ),
    # Any value: only imports keep these settings, and nothing reads them.
    **{name: Key(_MIRRORED, _anything, "", _operators) for name in MIRRORS},
    "initial-cluster-size": Key((QUORUM, STREAM), _at_least(0), "a valid cluster size"),
    "target-group-size": Key((QUORUM,), _at_least(1), "a valid target count value", max),
    "consumer-disconnected-timeout": Key(
        (QUORUM,), _at_least(0), "a valid consumer disconnected timeout", min
    ),
    "consumer-timeout": Key(_BOTH, _at_least(0), "a valid consumer timeout", min),
    "durability": Key(_ALL, _durability, "a valid durability"),
    "max-age": Key((STREAM,), _age, "a valid max age"),
    "stream-max-segment-size-bytes": Key(
        (STREAM,), _within(0, STREAM_SEGMENT_MAX_BYTES), "a valid segment size"
    ),
    "tier": Key((STREAM,), _name_of_tier, "a valid tier name"),
    "stream-filter-size-bytes": Key((STREAM,), _within(16, 255), "a valid filter size"),
}
"""All settings of policies."""


class Policy(Struct, frozen=True, dict=True):
    """A checked policy.

    Args:
        name: unique among the policies of its kind and vhost.
        pattern: a regular expression for the names of queues and exchanges.
        apply_to: one of `APPLY_TO`.
        priority: of the matching policies only that with the highest priority applies.
        definition: settings by key.
    """

    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: Mapping[str, Any]

    @cached_property
    def search(self) -> Search:
        """Searches for the pattern, which is compiled once: there may be any number of policies."""
        return found_by(self.pattern)

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """What a name must have so that the pattern is found in it."""
        try:
            return clauses_of(self.pattern)
        except PatternTooCostly:
            return ()

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of objects to which it applies.

        As in RabbitMQ a policy applies as a whole: not at all to a type that lacks one of its keys.
        """
        known = [KEYS[key].kinds for key in self.definition if key in KEYS]
        return tuple(
            kind
            for kind in APPLY_TO[self.apply_to]
            if kind == EXCHANGE or all(kind in kinds for kinds in known)
        )

    @property
    def rank(self) -> Rank:
        """Its place: the one with the highest priority goes first, of equal ones the first name."""
        return -self.priority, self.name

    def applies(self, kind: str, name: str, budget: SearchBudget) -> bool:
        """True if it applies to an object of that kind and name.

        Args:
            kind: "exchange", or the type of a queue.
            name: of the object.
            budget: what this and the other policies may take to search the name.
        """
        # The clauses first: a name that lacks one takes nothing off the budget.
        return (
            kind in self.kinds
            and fits(self.clauses, name)
            and found_within(self.search, name, budget)
        )


def unknown_settings(policy: Policy, *, operator: bool) -> list[str]:
    """Return the settings of a policy that have no effect here."""
    known = {name for name, key in KEYS.items() if key.merge is not None or not operator}
    return [name for name in policy.definition if name not in known or name in MIRRORS]


def check_policy(policy: Policy, *, operator: bool = False, strict: bool = True) -> None:
    """Refuse an invalid policy, and name what is wrong with it.

    Args:
        policy: a policy that a user wants to set.
        operator: whether it is an operator policy.
        strict: whether unknown settings are refused, too.
    """
    try:
        search_for(policy.pattern)
    except (PatternRefused, TypeError) as problem:
        raise precondition(f"pattern should be regular expression but {problem}") from None
    if policy.apply_to not in APPLY_TO:
        raise precondition(
            f"apply-to '{policy.apply_to}' unrecognised; should be one of: 'queues', "
            "'classic_queues', 'quorum_queues', 'streams', 'exchanges', or 'all'"
        )
    if not _within(_ANY, _NUMBER_MAX)(policy.priority):
        raise precondition(f"{term(policy.priority)} priority must be a number")
    if not policy.definition:
        raise precondition("no policy provided")
    mirrors = [name for name in policy.definition if name in MIRRORS]
    if mirrors and strict:
        raise precondition(
            f"{', '.join(mirrors)}: there are no mirrored queues, as in RabbitMQ since 4.0: leave "
            "it out, and declare quorum queues or keep the messages in PostgreSQL"
        )
    strange = unknown_settings(policy, operator=operator)
    if strange and strict:
        pairs = [(name, policy.definition[name]) for name in strange[:_SHOWN]]
        shown = ",".join(f"{{{term(name)},{term(value)}}}" for name, value in pairs)
        shown += ",..." if len(strange) > _SHOWN else ""
        raise precondition(f"[{shown}] are not recognised policy settings")
    for name, value in policy.definition.items():
        # An import keeps it as it is: there is no rule for its value.
        if name in strange:
            continue
        if isinstance(value, int) and value > _NUMBER_MAX:
            raise precondition(f"{name} is {value}, which is too large: give a number below 2^63")
        if not KEYS[name].fits(value):
            raise precondition(f"{term(value)} is not {KEYS[name].what}")


class PolicyIndex:
    """Finds the policy that applies to an object, by what its name has in common with patterns."""

    def __init__(self, policies: Iterable[Policy] = ()) -> None:
        self._kinds: dict[str, PatternIndex[Policy]] = {
            kind: PatternIndex() for kind in APPLY_TO["all"]
        }
        for policy in policies:
            self.add(policy)

    @property
    def units(self) -> int:
        """The work units of all searches until now."""
        return sum(index.units for index in self._kinds.values())

    def add(self, policy: Policy) -> None:
        """Add a policy, whose name no other in the index has."""
        for kind in policy.kinds:
            self._kinds[kind].add(policy.rank, policy.clauses, policy)

    def remove(self, policy: Policy) -> None:
        """Remove a policy."""
        for kind in policy.kinds:
            self._kinds[kind].remove(policy.rank)

    def first(self, kind: str, name: str, instead: Policy | None = None) -> Policy | None:
        """Return the policy that applies; of equal priorities that with the first name.

        Args:
            kind: "exchange", or the type of a queue.
            name: of the object.
            instead: a policy that is taken for the one of its name.
        """
        index = self._kinds.get(kind)
        if index is None:
            return None
        budget = SearchBudget()
        more = () if instead is None else ((instead.rank, instead),)
        for _, policy in index.found(name, *more):
            replaced = instead is not None and policy is not instead and policy.name == instead.name
            if not replaced and policy.applies(kind, name, budget):
                return policy
        return None


def merged(policy: Policy | None, operator: Policy | None) -> dict[str, Any]:
    """Return the merged settings of a policy and an operator policy."""
    given = policy.definition if policy is not None else {}
    # Unknown keys, which imports keep, must not reach the queues.
    settings = {name: value for name, value in given.items() if name in KEYS}
    for name, value in operator.definition.items() if operator is not None else ():
        merge = KEYS[name].merge if name in KEYS else None
        if merge is not None:
            settings[name] = merge(settings[name], value) if name in settings else value
    return settings
