"""Selective consumers: those that want some of the messages only.

Whose turn it is, is decided as for all consumers: by priority, then round robin. A consumer without
a selector gets the next message. One with a selector gets the first message from the position of
its group on that it wants; messages that it passes stay where they are. A group that has looked at
everything is left out until a message becomes ready.

    ready order     1   2   3   4   5   6            no group wants 1 and 3
    group a         . . . . . ^                      wants 2, 4
    group b         . . . . . . . . . ^              wants 5

A group with very many messages to look at does so in slices, in which other consumers take their
turn, and stops when the work budget of the turn is used up. Consumers of lower priority get no
message before those of higher priority have looked at it. Messages that have expired are removed
when a group comes to them, also behind others that no consumer wants.

A queue has this part while it has a selective consumer. Then its no-local consumers are groups as
well, which do not want the messages of their connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.c_types import C, Done, i32, i64, isize
from harebell.base.message import Message
from harebell.kernels.conditions import Condition
from harebell.model.consumer import Consumer
from harebell.model.dead_letter import EXPIRED
from harebell.model.limits import GROUP_WAITING_MESSAGES, SELECTOR_LOOKS, SELECTORS_INDEXED
from harebell.model.queue.features.key_waits import KeyWaits
from harebell.model.queue.features.looker import Looker
from harebell.model.queue.features.ready_bytes import subtract_ready_bytes
from harebell.model.queue.features.selector_group import SelectorGroup
from harebell.model.queue.features.selector_index import SelectorIndex

if TYPE_CHECKING:
    from harebell.model.queue.features.queue_internals import QueueInternals
    from harebell.model.queue.order.contract import MessageOrder
    from harebell.model.queue.order.keyed import KeyedOrder

_LOOKS: i32 = SELECTOR_LOOKS
_INDEXED: isize = SELECTORS_INDEXED
_WAITING: isize = GROUP_WAITING_MESSAGES
_LOWEST: i32 = -(2**31)
_NO_POSITION: i64 = -1


class Selecting:
    """The selective consumers of one queue.

    Args:
        queue: whose consumers they are.
    """

    def __init__(self, queue: QueueInternals) -> None:
        self._queue = queue
        self._order: MessageOrder = queue.order
        self._groups: list[SelectorGroup] = []
        # Those that look at all messages, and the indexes of the others.
        self._alone: list[SelectorGroup] = []
        self._indexes: list[SelectorIndex] = []
        self._pending = False
        self._looker = Looker(queue.context, queue.order)
        self._busy = False
        if queue.keyed is not None:
            queue.keyed.keys.changed = set()
        if queue.no_local is not None:
            queue.no_local.release_all()
            for consumer in queue.consumers:
                self.add(consumer)

    # --- consumers ------------------------------------------------------------------------------

    def add(self, consumer: Consumer) -> Done:
        """Put a consumer into its group, if it does not want everything."""
        if consumer.selector is None and not consumer.excluded:
            return 0
        group: SelectorGroup
        for group in self._groups:
            if group.selector is consumer.selector and group.excluded == consumer.excluded:
                break
        else:
            group = SelectorGroup(consumer.selector, consumer.excluded, self._order.level_bits)
            group.waits = None if self._queue.keyed is None else KeyWaits()
            self._groups.append(group)
            self._alone.append(group)
            self._count_alike(group)
        group.members += 1
        consumer.group = group
        return 0

    def remove(self, consumer: Consumer) -> C[bool]:
        """Remove a consumer that its queue has removed; return whether selective ones are left."""
        group: SelectorGroup | None = consumer.group
        if group is not None:
            consumer.group = None
            group.members -= 1
            if group.members == 0:
                self._leave_index(group)
                self._alone.remove(group)
                self._groups.remove(group)
        selectors = [each.selector for each in self._groups]
        return selectors.count(None) < len(selectors)

    def end(self) -> Done:
        """Let no-local consumers take the next message again: no selective consumer is left."""
        consumer: Consumer
        for consumer in self._queue.consumers:
            consumer.group = None
        self._groups = []
        self._alone = []
        self._indexes = []
        if self._queue.keyed is not None:
            self._queue.keyed.keys.changed = None
        return 0

    # --- the index ------------------------------------------------------------------------------

    def _count_alike(self, added: SelectorGroup) -> Done:
        """Let the groups that compare one property join an index, if there are enough of them."""
        equality = added.equality
        if equality is None or self._queue.keyed is not None or self._order.level_bits:
            return 0
        alike = [
            each
            for each in self._groups
            if each.equality is not None and each.equality.node == equality.node
        ]
        group: SelectorGroup
        if len(alike) >= _INDEXED:
            for group in alike:
                group.joins = True
        return 0

    def _join(self, group: SelectorGroup) -> Done:
        """Have a group that has looked at everything join its index, once that has, too."""
        equality = group.equality
        assert equality is not None, "it compares something"
        index: SelectorIndex
        for index in self._indexes:
            if index.node == equality.node:
                if not self._sort(index):
                    return 0
                break
        else:
            index = SelectorIndex(equality, group)
            self._indexes.append(index)
        self._alone.remove(group)
        return index.add(group)

    def _leave_index(self, group: SelectorGroup) -> Done:
        """Have a group look at all messages itself again."""
        index: SelectorIndex | None = group.index
        if index is None:
            return 0
        index.remove(group)
        group.leaves()
        self._alone.append(group)
        if not index.groups:
            self._indexes.remove(index)
        return 0

    def _sort_pending(self) -> Done:
        """Offer what became ready to the groups of the indexes."""
        index: SelectorIndex
        self._pending = False
        for index in list(self._indexes):
            if index.pending and not self._sort(index):
                index.look_again()
        return 0

    def _sort(self, index: SelectorIndex) -> C[bool]:
        """Offer messages to the groups of an index; return whether it has come to the end."""
        queue: QueueInternals = self._queue
        order: MessageOrder = self._order
        scout: SelectorGroup = index.scout
        condition: Condition = index.read
        group: SelectorGroup
        for _ in range(_LOOKS):
            back: i64 = scout.returned()
            position: i64 = back if back >= 0 else order.next_ready(scout.cursors)
            if position < 0:
                index.pending = False
                return True
            if order.is_spilled(position):
                # As for a group that looks itself: `_loaded` goes on.
                order.load(position, self._loaded)
                return True
            message: Message | None = order.read(position)
            self._pass(scout, position, back)
            if message is None:
                continue
            if message.due > 0 and message.due <= queue.clock.steady:
                if order.take_out(position):
                    self._expire(message, position)
                continue
            value = self._looker.value_of(condition, message, position)
            found = None if value is None else index.offer(value, position)
            if found is not None:
                for group in list(found):
                    if group.has_too_many():
                        self._leave_index(group)
            queue.work.spent += 1
            if queue.work.spent >= queue.work.check_at and queue.work.check():
                return False
        return False

    # --- messages that become ready -------------------------------------------------------------

    def arrived(self) -> Done:
        """Deliver messages that became ready behind all others."""
        group: SelectorGroup
        for group in self._alone:
            group.ended = False
        self._note_pending()
        if self._queue.put_off:
            # The next turn delivers, which has a budget of its own.
            index: SelectorIndex
            for index in self._indexes:
                index.look_again()
            return 0
        return self.deliver()

    def _note_pending(self) -> Done:
        index: SelectorIndex
        for index in self._indexes:
            index.pending = self._pending = True
        return 0

    def came_back(self, position: i64) -> Done:
        """Note a message that is ready again; the caller drains afterwards."""
        group: SelectorGroup
        for group in self._alone:
            group.came_back(position)
        index: SelectorIndex
        for index in self._indexes:
            index.scout.came_back(position)
        return self._note_pending()

    def back_to(self, position: i64) -> Done:
        """Note that messages are ready again from a position of a log on."""
        group: SelectorGroup
        for group in self._alone:
            group.back_to(position)
        index: SelectorIndex
        for index in self._indexes:
            index.scout.back_to(position)
        return self._note_pending()

    # --- deliver --------------------------------------------------------------------------------

    def deliver(self) -> Done:
        """Deliver to all consumers that are ready, selective or not."""
        if self._busy:
            # A delivery has made room for another one: the loop that delivers goes on with it.
            return 0
        self._busy = True
        try:
            self._deliver_all()
        finally:
            self._busy = False
        return 0

    def _deliver_all(self) -> Done:
        queue: QueueInternals = self._queue
        group: SelectorGroup | None
        for group in self._groups:
            if group.short:
                # Its consumer may have got credit.
                group.short = group.ended = False
        if queue.keyed is None:
            return self._serve(False, 0)
        self._keys_changed()
        # Those of ordering keys are dealt to all others at once: first come consumers that want
        # some of the messages only, unless the others have a higher priority.
        other: Consumer | None = queue.consumers.pick_least_busy()
        if other is not None:
            self._serve(True, other.priority)
        queue.deal_keys()
        self._keys_changed()
        return self._serve(True, _LOWEST)

    def _keys_changed(self) -> Done:
        """Try messages again whose ordering keys may be free now."""
        keyed = self._queue.keyed
        changed = None if keyed is None else keyed.keys.changed
        if not changed:
            return 0
        group: SelectorGroup
        for group in self._groups:
            if group.waits is not None and group.waits.changed(changed):
                group.ended = False
        changed.clear()
        return 0

    def _serve(self, keyed: bool, lowest: i32) -> Done:
        """Deliver in turns; with ordering keys to selective consumers of a priority from one on."""
        queue: QueueInternals = self._queue
        group: SelectorGroup | None
        while self._order.count > 0:
            if self._pending:
                self._sort_pending()
            consumers = queue.consumers
            consumer: Consumer | None = (
                consumers.pick_selective(lowest) if keyed else consumers.pick()
            )
            if consumer is None:
                break
            group = consumer.group
            if group is not None:
                self._look(group, consumer)
            elif not queue.deliver_to(consumer):
                break
            queue.work.spent += 1
            if queue.work.spent >= queue.work.check_at and queue.work.check():
                queue.drain_later()
                break
        return 0

    def _look(self, group: SelectorGroup, consumer: Consumer) -> Done:
        """Look for the next message that a consumer wants, and deliver it."""
        queue: QueueInternals = self._queue
        order: MessageOrder = self._order
        waits = group.waits
        if waits and self._try_again(waits, group, consumer):
            return 0
        for _ in range(_LOOKS):
            back: i64 = group.returned()
            position: i64 = back
            if position < 0 and group.index is not None:
                if self._sort(group.index):
                    position = back = group.returned()
                elif group.returned() < 0:
                    # There is more to look at: in its next turn.
                    return 0
                else:
                    continue
            elif position < 0 or order.level_bits:
                position = order.next_ready(group.cursors)
                if back >= 0 and not _is_before(position, back, order.level_bits):
                    position = back
            if position < 0 or (waits is not None and waits.count >= _WAITING):
                group.ended = True
                if group.joins and position < 0 and group.index is None:
                    return self._join(group)
                return 0
            if order.is_spilled(position):
                # Reading it at once would stop the broker: this group waits.
                group.ended = True
                order.load(position, self._loaded)
                return 0
            message: Message | None = order.read(position)
            if message is None:
                self._pass(group, position, back)
                continue
            expired: bool = message.due > 0 and message.due <= queue.clock.steady
            if not expired and not self._wants(group, message, position):
                self._pass(group, position, back)
                queue.work.spent += 1
                if queue.work.spent >= queue.work.check_at and queue.work.check():
                    return 0
                continue
            if not expired and not consumer.fits(message):
                group.ended = group.short = True
                return 0
            self._pass(group, position, back)
            redelivered: bool = order.was_out(position)
            if expired:
                # With an ordering key it may have to wait; then it expires at the head only.
                if self._acquire(position, consumer):
                    self._expire(message, position)
            elif self._acquire(position, consumer):
                self._hand_over(consumer, message, position, redelivered)
                return 0
            elif waits is not None and queue.keyed is not None:
                waits.add(queue.keyed.key_of(message), position)
        return 0

    def _pass(self, group: SelectorGroup, position: i64, back: i64) -> Done:
        if position == back:
            return group.pass_returned()
        return self._order.pass_by(group.cursors, position)

    def _wants(self, group: SelectorGroup, message: Message, position: i64) -> C[bool]:
        """True if a group wants a message."""
        local = self._queue.no_local
        if group.excluded and local is not None and local.origin_of(position) == group.excluded:
            return False
        return group.selector is None or self._looker.wants(group.selector, message, position)

    def _try_again(self, waits: KeyWaits, group: SelectorGroup, consumer: Consumer) -> C[bool]:
        """Try messages whose ordering keys have changed; return whether not to look further."""
        order: MessageOrder = self._order
        for _ in range(_LOOKS):
            position: i64 = waits.next()
            if position < 0:
                return False
            message: Message | None = order.read(position)
            if message is None:
                # Others have taken and settled it.
                waits.leave()
                continue
            if not consumer.fits(message):
                group.ended = group.short = True
                return True
            redelivered: bool = order.was_out(position)
            if not self._acquire(position, consumer):
                waits.stay()
                continue
            waits.leave()
            if message.due > 0 and message.due <= self._queue.clock.steady:
                self._expire(message, position)
                continue
            self._hand_over(consumer, message, position, redelivered)
            return True
        return True

    def _acquire(self, position: i64, consumer: Consumer) -> C[bool]:
        keyed: KeyedOrder | None = self._queue.keyed
        if keyed is None:
            return self._order.acquire(position, consumer)
        return keyed.acquire_wanted(position, consumer)

    def _expire(self, message: Message, position: i64) -> Done:
        """Remove an expired message that was acquired."""
        queue: QueueInternals = self._queue
        if queue.keyed is not None:
            queue.keyed.keys.release(position)
        self._order.position = position
        subtract_ready_bytes(queue, message)
        return queue.dead_letter(position, EXPIRED)

    def _hand_over(
        self, consumer: Consumer, message: Message, position: i64, redelivered: bool
    ) -> Done:
        """Deliver a message that was taken out of the order."""
        queue: QueueInternals = self._queue
        order: MessageOrder = self._order
        order.position = position
        order.mark_out(position)
        subtract_ready_bytes(queue, message)
        if redelivered:
            message = queue.with_count(message)
        if message.due:
            # The delivery may be requeued, and expire then.
            queue.with_expiry().active = True
        queue.count_delivery(consumer, redelivered)
        if consumer.no_ack:
            consumer.deliver(message, _NO_POSITION, redelivered)
            order.settle(position)
        else:
            queue.unacked += 1
            consumer.deliver(message, position, redelivered)
        return 0

    def _loaded(self) -> None:
        """Go on: a large message is in memory now."""
        if not self._queue.deleted:
            self.arrived()

    # --- what no consumer wants -----------------------------------------------------------------

    def unselected(self) -> tuple[int, int]:
        """Return how many ready messages no consumer wants, and the age of the oldest in ms.

        The age is 0 if there is none, or if it is not known without reading from disk. A consumer
        without a selector wants every message.
        """
        if any(each.group is None for each in self._queue.consumers):
            return 0, 0
        count, oldest = 0, 0
        for level, order in self._order.levels():
            passed = min([group.cursor_of(level) for group in self._groups])
            ready, first = self._order.ready_before(level, passed)
            if ready:
                count += ready
                moment = 0 if order.is_spilled(first) else order.log.time_of(first)
                oldest = min(oldest or moment, moment or oldest)
        looking = max([group.looks_at() for group in self._groups], default=0)
        age = self._queue.clock.ms - oldest if oldest else 0
        return max(count - looking, 0), max(age, 0)


def _is_before(position: i64, other: i64, level_bits: i32) -> C[bool]:
    """True if the first of two positions, or -1, is taken before the other."""
    if position < 0:
        return False
    levels: i64 = (1 << level_bits) - 1
    if position & levels != other & levels:
        return position & levels > other & levels
    return position < other
