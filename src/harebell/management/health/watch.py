"""Look at the broker every few seconds, and keep what was found.

    look 1   look 2   look 3   look 4   look 5   look 6
    seen     seen     seen     -        seen     -  -       a rule with `passes` = 3
                      found until here and on ....  ends

What is seen in enough looks in a row is a finding, and what two looks in a row do not see is none
any more. A queue without messages costs two comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from harebell.admin.findings import QUEUE, Finding
from harebell.base.slices import Slices, in_pieces
from harebell.management.limits import FINDINGS_SHOWN, FINDINGS_SLICE_QUEUES, FINDINGS_TRAILS

if TYPE_CHECKING:
    from harebell.config import Config
    from harebell.management.health.rule import NodeRule, QueueRule, Seen
    from harebell.management.health.trails import NodeTrail, QueueTrail
    from harebell.management.metrics.source import Source
    from harebell.model.queue.contract import Queue

_GONE_LOOKS = 2
Key = tuple[str, str]
"""The vhost and the name that a finding is about."""


class _Suspicion:
    """What a rule has seen of one thing.

    Args:
        since: when it was seen first, in milliseconds since 1970.

    Attributes:
        since: as given.
        looks: how many looks in a row have seen it.
        seen_in: the number of the last one.
        on: whether it is a finding.
        last: what was seen last.
    """

    __slots__ = ("last", "looks", "on", "seen_in", "since")

    def __init__(self, since: int, seen: Seen) -> None:
        self.since = since
        self.looks = self.seen_in = 0
        self.on = False
        self.last = seen


class Watch:
    """Finds what needs somebody; `Findings` for commands.

    Args:
        source: returns the broker.
        config: returns the configuration, whose keys are the thresholds.
        brokers: returns the brokers that share its store.

    Attributes:
        found: what was found at the last complete look, by rule.
    """

    def __init__(
        self,
        source: Callable[[], Source],
        config: Callable[[], Config],
        brokers: Callable[[], Iterable[dict[str, Any]]],
    ) -> None:
        self._source = source
        self._config = config
        self._brokers = brokers
        self._looks = 0
        self._queue_rules: list[QueueRule] = []
        self._node_rules: list[NodeRule] = []
        self._order: list[tuple[str, str]] = []
        self._trails: dict[Queue, QueueTrail] = {}
        self._node: NodeTrail | None = None
        self._suspicions: dict[str, dict[Key, _Suspicion]] = {}
        # Exchanges, and queues by their names, that dead letters went to at the last look.
        self._letter_targets: set[Key] = set()
        self.found: Sequence[Finding] = ()

    @property
    def every_ms(self) -> int:
        """Milliseconds between two looks; 0 for none."""
        return self._config().health_interval

    def take(self, now: int) -> Slices[None]:
        """Look at the broker.

        Args:
            now: milliseconds since 1970.
        """
        self._looks += 1
        if self._looks == 1:
            return  # a broker that starts has other things to do
        if self._node is None:
            yield from self._load()
        assert self._node is not None, "`_load` has made it"
        config = self._config()
        yield from self._look_at_queues(now, config)
        self._node.look(now)
        for rule in self._node_rules:
            suspicions = self._suspicions[rule.name]

            def is_on(vhost: str, name: str, known: dict[Key, _Suspicion] = suspicions) -> bool:
                return (vhost, name) in known and known[vhost, name].on

            for seen in rule.look(self._node, config, is_on):
                if seen is None:
                    yield
                else:
                    self._note(rule, (seen.vhost, seen.name), seen, now)
        yield from self._publish(now)

    def _load(self) -> Slices[None]:
        """Import the rules, one in each slice."""
        from harebell.management.health.rule import QueueRule
        from harebell.management.health.rules import NAMES
        from harebell.management.health.trails import NodeTrail

        queue_rules: list[QueueRule] = []
        node_rules: list[NodeRule] = []
        for name in NAMES:
            yield
            rule = import_module(f"harebell.management.health.rules.{name}").RULE
            of_queues = isinstance(rule, QueueRule)
            (queue_rules if of_queues else node_rules).append(rule)
            self._order.append((rule.name, QUEUE if of_queues else rule.kind))
            self._suspicions[rule.name] = {}
        self._queue_rules, self._node_rules = queue_rules, node_rules
        self._node = NodeTrail(self._source(), self._brokers)

    # --- queues -----------------------------------------------------------------------------------

    def _look_at_queues(self, now: int, config: Config) -> Slices[None]:
        """Look at the queues that have messages, or dead letters."""
        assert self._node is not None, "`_load` has made it"
        targets: set[Key] = set()
        for vhost in list(self._node.source.broker.vhosts.values()):
            trails = 0
            for queues in in_pieces(list(vhost.queues.values()), FINDINGS_SLICE_QUEUES):
                for queue in queues:
                    if queue.kind == "stream" or queue.deleted:
                        continue
                    letters = getattr(queue, "dead_letters", None)
                    if letters is not None:
                        place = letters.exchange or f"\0{letters.routing_key}"
                        targets.add((vhost.name, place))
                    if queue.ready_count() or queue.unacked or (letters and letters.sent):
                        trails += 1
                        if trails <= FINDINGS_TRAILS:
                            self._look_at_queue(queue, now, config)
                yield
        self._letter_targets = targets
        for pairs in in_pieces(list(self._trails.items()), FINDINGS_SLICE_QUEUES):
            for queue, trail in pairs:
                if trail.checked != self._looks:
                    del self._trails[queue]
            yield

    def _look_at_queue(self, queue: Queue, now: int, config: Config) -> None:
        from harebell.management.health.trails import QueueTrail

        trail = self._trails.get(queue)
        if trail is None:
            self._trails[queue] = trail = QueueTrail(queue, now)
        else:
            trail.look(now)
        trail.checked = self._looks
        key = (queue.vhost, queue.name)
        trail.parks = (
            bool(queue.source and (queue.vhost, queue.source) in self._letter_targets)
            or (queue.vhost, f"\0{queue.name}") in self._letter_targets
        )
        for rule in self._queue_rules:
            known = self._suspicions[rule.name].get(key)
            seen = rule.look(trail, config, known is not None and known.on)
            if seen is not None:
                trail.troubled = True
                self._note(rule, key, seen, trail.now)

    # --- from what was seen to findings -----------------------------------------------------------

    def _note(self, rule: QueueRule | NodeRule, key: Key, seen: Seen, now: int) -> None:
        known = self._suspicions[rule.name]
        suspicion = known.get(key)
        if suspicion is None:
            suspicion = known[key] = _Suspicion(now, seen)
        suspicion.looks += 1
        suspicion.seen_in = self._looks
        suspicion.last = seen
        suspicion.on = suspicion.on or suspicion.looks >= rule.passes

    def _publish(self, now: int) -> Slices[None]:
        """Forget what is not seen any more, and show the rest."""
        found: list[Finding] = []
        for name, kind in self._order:
            known = self._suspicions[name]
            shown: dict[str, int] = {}
            for pairs in in_pieces(list(known.items()), FINDINGS_SLICE_QUEUES):
                for key, suspicion in pairs:
                    missed = self._looks - suspicion.seen_in
                    if missed >= (_GONE_LOOKS if suspicion.on else 1):
                        del known[key]
                    elif suspicion.on:
                        vhost = key[0]
                        shown[vhost] = shown.get(vhost, 0) + 1
                        if shown[vhost] <= FINDINGS_SHOWN:
                            found.append(_finding(name, kind, key, suspicion))
                yield
            found += [
                _rest(name, kind, vhost, count - FINDINGS_SHOWN, now)
                for vhost, count in shown.items()
                if count > FINDINGS_SHOWN
            ]
        self.found = tuple(found)


def _finding(rule: str, kind: str, key: Key, suspicion: _Suspicion) -> Finding:
    vhost, name = key
    seen = suspicion.last
    since = seen.since or suspicion.since
    return Finding(
        *(rule, kind, vhost, name, seen.why, since, seen.advice, seen.command),
        generation=seen.generation,
    )


def _rest(rule: str, kind: str, vhost: str, count: int, now: int) -> Finding:
    why = f"the same of {count:,} more"
    return Finding(rule, kind, vhost, "", why, now, "Begin with those that are named.", "", count)
