"""What the broker knows of a link by its name: where it is attached, and what a detach leaves.

A link is named by the container of its peer, its own name and its direction, for a user in a vhost
(AMQP 1.0 2.6.1). Its terminus at the broker ends with a detach that is closed. Any other end leaves
it until its expiry-policy and its timeout say so:

    event                    the timeout begins with the policy
    detach, closed=false     link-detach
    end of the session       session-end          (and those above)
    end of the connection    connection-close     (and those above)
    none                     never                at most `KEPT_LINK_SECONDS`

What is kept is what resuming needs: deliveries that the peer has not settled, and outcomes of
deliveries that it has not settled (`harebell.front.amqp_1_0.resuming`). A link without either
leaves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.slices import Slices, at_once, stepped
from harebell.front.amqp_1_0.errors import INVALID_FIELD, STOLEN, LinkError
from harebell.front.amqp_1_0.resuming import Resumption, Unsettled, resume_sent, settling
from harebell.front.limits import KEPT_LINK_DELIVERIES, KEPT_LINK_SECONDS
from harebell.model.consumer import Consumer
from harebell.model.limits import REMOVED_AT_ONCE
from harebell.model.queue.stream import StreamQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harebell.base.timers import Timer
    from harebell.front.amqp_1_0.connection import Connection
    from harebell.front.amqp_1_0.session import Session
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.model.queue.contract import Queue
    from harebell.wire.v1.composites import Attach, Source, Target

LINK_DETACH, SESSION_END, CONNECTION_CLOSE, NEVER = range(4)
"""Events, and the policies whose timeout begins with them."""
_TAKEN_OVER = -1
"""The event that another attach takes the link: no timeout begins."""
POLICIES = {
    "link-detach": LINK_DETACH,
    "session-end": SESSION_END,
    "connection-close": CONNECTION_CLOSE,
    "never": NEVER,
}
_MS = 1_000


def check_policy(asked: Source | Target) -> None:
    """Refuse an expiry-policy that does not exist.

    Raises:
        LinkError: invalid-field.
    """
    if asked.expiry_policy not in POLICIES:
        text = f"attach: expiry-policy must be one of {', '.join(POLICIES)}"
        raise LinkError(INVALID_FIELD, text)


def lasts(asked: Source | Target) -> bool:
    """True if what a link has left may be there after the end of its session."""
    return POLICIES[asked.expiry_policy] > SESSION_END or asked.timeout > 0


class Terminus:
    """The broker's side of a link, attached or kept.

    Args:
        registry: where it is listed.
        key: the vhost, the user, the container, the name and the role of the peer.
        asked: the source or target.

    Attributes:
        link: the attached link; None if it is kept.
        generation: how often its link was resumed: tags of other deliveries are not used again.
        queue: of the deliveries.
        deliveries: what the peer has not settled of what it got: positions by delivery-tag.
        unsettled: the outcomes of what the broker got.
        holder: the termini that wait for the same event; None while a timeout runs.
    """

    __slots__ = (
        *("_counted", "_is_shared", "_timer", "deliveries", "generation", "holder"),
        *("key", "link", "policy", "queue", "registry", "seconds", "unsettled"),
    )

    def __init__(
        self, registry: ConnectionRegistry, key: tuple[Any, ...], asked: Source | Target
    ) -> None:
        self.registry = registry
        self.key = key
        self.policy = POLICIES[asked.expiry_policy]
        seconds = KEPT_LINK_SECONDS if self.policy == NEVER else asked.timeout
        self.seconds = min(seconds, KEPT_LINK_SECONDS)
        # What one of several has left is for the others.
        self._is_shared = "shared" in asked.capabilities
        self.link: Any = None
        self.generation = 0
        self.queue: Queue | None = None
        self.deliveries: dict[bytes, int] = {}
        self.unsettled: Unsettled | None = None
        self.holder: dict[Terminus, None] | None = None
        self._timer: Timer | None = None
        self._counted = 0

    @property
    def user(self) -> str:
        """The name of the user."""
        name: str = self.key[1]
        return name

    @property
    def sends(self) -> bool:
        """True if the broker sends on the link."""
        role: bool = self.key[-1]
        return role

    def outlives(self, event: int) -> bool:
        """True if the terminus is there after an event, for a time at least."""
        return not self._is_shared and (self.policy > event or self.seconds > 0)

    # --- kept -----------------------------------------------------------------------------------

    def keep(self, event: int, session: Session) -> None:
        """Keep what a detached link has left, until the timeout that may begin with an event."""
        self.link = None
        size = len(self.deliveries) + (len(self.unsettled.outcomes) if self.unsettled else 0)
        if not size:
            self.forget()
            return
        shares = self.registry.kept_deliveries
        if shares.objection(self.user, size):
            self.expire()
            return
        self._counted = size
        shares.add(self.user, size)
        if event != _TAKEN_OVER:
            kept = session.kept if self.policy == SESSION_END else session.connection.kept_links
            self.wait(event, session.connection, kept)

    def wait(
        self, event: int, connection: Connection, holder: dict[Terminus, None] | None = None
    ) -> None:
        """Begin the timeout, or wait in a holder for the event that it begins with."""
        self.leave_holder()
        if event < self.policy < NEVER and holder is not None:
            self.holder = holder
            holder[self] = None
        elif not self.seconds:
            self.expire()
        else:
            timers = connection.broker.timers
            self._timer = timers.timer(self.expire)
            self._timer.set(timers.clock.steady + self.seconds * _MS)

    def leave_holder(self) -> None:
        """Wait for no event any more."""
        if self.holder is not None:
            self.holder.pop(self, None)
            self.holder = None

    def expire(self) -> None:
        """Forget the link; its deliveries go back to their queue."""
        self.forget()
        slices, count = self.giving_back(), len(self.deliveries)
        if count <= REMOVED_AT_ONCE:
            at_once(slices)
        else:
            self.registry.work.later(stepped(slices, self.registry.work, 1, bool))

    def forget(self) -> None:
        """Take the link off the list, with what is counted for it."""
        if self.registry.links.get(self.key) is self:
            del self.registry.links[self.key]
        self.leave_holder()
        self.link = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._counted:
            self.registry.kept_deliveries.remove(self.user, self._counted)
            self._counted = 0

    def giving_back(self) -> Slices[None]:
        """Requeue the deliveries."""
        queue, positions = self.queue, list(self.deliveries.values())
        self.deliveries = {}
        yield from requeuing(queue, positions)


def requeuing(queue: Queue | None, positions: Iterable[int]) -> Slices[None]:
    """Requeue deliveries of a queue, then serve it."""
    for position in positions:
        if queue is None or queue.deleted:
            return
        queue.requeue_failed(position)
        yield
    if queue is not None and not queue.deleted:
        queue.drain()


# --- attach -------------------------------------------------------------------------------------


def key_of(session: Session, asked: Attach) -> tuple[Any, ...]:
    """Return the name of a link, with all that is part of it."""
    connection = session.connection
    return (session.vhost.name, session.user.name, connection.container, asked.name, asked.role)


def claim(session: Session, asked: Attach, answer: Attach) -> None:
    """Give a link that is made its name: another link of the name is detached.

    Args:
        session: of the link.
        asked: as the peer has it.
        answer: gets the deliveries that the broker knows.
    """
    link = session.links[asked.handle]
    registry = session.connection.registry
    key = key_of(session, asked)
    old: Terminus | None = registry.links.get(key)
    if old is not None and old.link is not None:
        _take_over(old.link, session.connection)
        old = registry.links.get(key)
    if old is not None:
        old.forget()
    terminus = Terminus(registry, key, answer.source if asked.role else answer.target)
    terminus.link = link
    registry.links[key] = terminus
    link.terminus = terminus
    if asked.role:
        _resume_sent(link, asked, answer, terminus, old)
    else:
        _resume_received(link, asked, answer, old)


def lose(session: Session, asked: Attach) -> None:
    """Forget what is kept for a link whose user may not attach it any more."""
    terminus: Terminus | None = session.connection.registry.links.get(key_of(session, asked))
    if terminus is not None and terminus.link is None:
        terminus.expire()


def _take_over(link: Any, taker: Connection) -> None:
    """Detach a link because its name is attached again."""
    session = link.session
    if not isinstance(link, Consumer):
        session.outcomes.close()
    keep(session, [link], _TAKEN_OVER)
    # Not the connection's own name: it has the port of another client.
    where = "the same connection" if taker is session.connection else "another connection"
    error = LinkError(STOLEN, f"link '{link.name}' is attached again, on {where}")
    session.detach(link, error)
    link.end()


def _resume_sent(
    link: Any, asked: Attach, answer: Attach, terminus: Terminus, old: Terminus | None
) -> None:
    """Go on with what the broker has sent on a link before."""
    deliveries: dict[bytes, int] = {}
    if old is not None:
        terminus.generation = old.generation + 1
        if asked.unsettled is not None and old.queue is link.queue and not link.settles:
            deliveries, old.deliveries = old.deliveries, {}
        link.connection.perform(stepped(old.giving_back(), terminus.registry.work, 1, bool))
    link.generation = terminus.generation
    if asked.unsettled is None:
        return
    room = _room(link, answer)
    resumption, decided = resume_sent(deliveries, asked, room)
    answer.unsettled = resumption.reported
    answer.incomplete_unsettled = resumption.partial
    link.resumption = resumption if resumption.open else None
    link.connection.perform(stepped(settling(link.queue, decided), terminus.registry.work, 1, bool))


def _resume_received(link: Any, asked: Attach, answer: Attach, old: Terminus | None) -> None:
    """Go on with what the broker has got on a link before."""
    before = old.unsettled if old is not None else None
    if asked.unsettled is None:
        return
    link.resumes_only = asked.incomplete_unsettled
    if link.unsettled is None:
        answer.unsettled = {}
        return
    if before is not None:
        link.unsettled.take_from(before, asked)
    answer.unsettled, answer.incomplete_unsettled = link.unsettled.reported(_room(link, answer))
    link.resumes_only = link.resumes_only or answer.incomplete_unsettled


def _room(link: Any, answer: Attach) -> int:
    """Return the octets of a frame that are left for the deliveries."""
    return int(link.connection.frame_max) - len(answer.encoded()) - 64


# --- the end of links ---------------------------------------------------------------------------


def forget(link: Any) -> None:
    """Forget a link that is detached for good."""
    terminus: Terminus | None = link.terminus
    if terminus is not None:
        link.terminus = None
        terminus.forget()


def keep(session: Session, links: Iterable[Any], event: int) -> None:
    """Keep what is left of links after an event, as far as their termini say.

    What is not kept is requeued by the end of the link. One pass over the session's deliveries,
    of which no more are looked at than one link may leave.
    """
    kept: dict[Any, Terminus] = {}
    for link in links:
        terminus: Terminus | None = link.terminus
        if terminus is None:
            continue
        link.terminus = None
        if terminus.outlives(event) and not link.owned:
            kept[link] = terminus
        else:
            terminus.forget()
    if not kept:
        return
    for link, terminus in kept.items():
        if terminus.sends:
            terminus.queue = link.queue
        else:
            terminus.unsettled = link.unsettled
    senders = {link for link, terminus in kept.items() if terminus.sends and _can_keep(link)}
    if senders and session.unacked.count <= KEPT_LINK_DELIVERIES:
        _collect(session, senders, kept)
    for terminus in kept.values():
        terminus.keep(event, session)


def _can_keep(link: Any) -> bool:
    # A stream is read again from any offset: nothing of it is unsettled.
    return not link.settles and not isinstance(link.queue, StreamQueue)


def _collect(session: Session, links: set[Any], kept: dict[Any, Terminus]) -> None:
    """Move deliveries from the session to the termini of their links."""
    for each in links:
        resumption: Resumption | None = each.resumption
        if resumption is not None:
            kept[each].deliveries.update(resumption.deliveries)
            each.resumption = None
    unacked = session.unacked
    number = unacked.first()
    while unacked.count and number < unacked.next:
        entry = unacked.get(number)
        link: Any = None if entry is None else entry.consumer
        if entry is not None and link in links:
            unacked.take(number)
            link.released()
            kept[link].deliveries[link.tag_of(number)] = entry.position
        number = unacked.next_from(number + 1)


def expire_with_connection(connection: Connection) -> None:
    """Begin the timeouts of termini that begin with the end of a connection."""
    expire_held(connection.kept_links, CONNECTION_CLOSE, connection)


def expire_held(holder: dict[Terminus, None], event: int, connection: Connection) -> None:
    """Begin the timeouts of termini that have waited for an event."""

    def expiring() -> Slices[None]:
        for terminus in list(holder):
            # Between two slices a link may be attached again.
            if terminus in holder:
                terminus.wait(event, connection)
            yield

    if len(holder) <= REMOVED_AT_ONCE:
        at_once(expiring())
    elif holder:
        work = connection.registry.work
        work.later(stepped(expiring(), work, 1, bool))
