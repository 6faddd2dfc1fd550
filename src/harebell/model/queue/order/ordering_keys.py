"""Ordering keys: the keys of a queue that are held, and the messages that wait for them.

    key      held by    out      waiting
    "a"      consumer   4  9     12  15      delivered to that consumer
    "b"      none                11          delivered to any consumer
    "c"      consumer   7        3  13       3 was requeued: blocked while 7 is out
    "d"      consumer   5        14          5 waits for its retry: blocked until then

A key is held while deliveries of it are out; its messages are delivered in the order of their
positions. A key with no deliveries and no waiting messages is removed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Any

from harebell.base.message import Message
from harebell.model.editor import Editor
from harebell.model.limits import GROUP_KEY_LETTERS

NOTHING = -1
_ROUTING_KEY = "routing_key"
_PROPERTIES = frozenset(
    (
        "app_id",
        "content_encoding",
        "content_type",
        "correlation_id",
        "message_id",
        "priority",
        "reply_to",
        "type",
        "user_id",
    )
)
_SLACK = 1_000


def key_of(editor: Editor, name: str, message: Message) -> Hashable | None:
    """Return the key of a message; None if it has none, and therefore no order.

    Args:
        editor: reads messages.
        name: `routing_key`, a property, or a header.
        message: the message whose property or header it is.
    """
    value = value_of(editor, name, message)
    if value is None and name not in _PROPERTIES and message.has_headers:
        value = editor.header_of(message, name)
    if isinstance(value, str | bytes):
        # Keys with the same first letters, up to this length, count as one.
        return value[:GROUP_KEY_LETTERS]
    # Other types, such as lists and tables, are no keys: not all of them are hashable.
    return value if isinstance(value, int) else None


def value_of(editor: Editor, name: str, message: Message) -> Any:
    """Return the routing key or the property of a message; None if it has none of that name."""
    if name == _ROUTING_KEY:
        return message.routing_key
    return editor.property_of(message, name) if name in _PROPERTIES else None


class OrderingKey:
    """One key.

    Args:
        key: what messages of the same order have in common.

    Attributes:
        holder: the consumer or group with deliveries of it, or None.
        out: the number of these deliveries.
        blocked: whether a message was requeued while others were out.
        waiting: a heap of positions; stale entries may be in it, but not at its head.
    """

    __slots__ = ("blocked", "holder", "key", "out", "waiting")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.holder: object = None
        self.out = 0
        self.blocked = False
        self.waiting: list[int] = []


class OrderingKeys:
    """The keys of one queue.

    Attributes:
        count: the number of waiting positions.
        changed: keys whose holder, deliveries or waiting messages have changed; None if they are
            not noted.
    """

    def __init__(self) -> None:
        self.count = 0
        self.changed: set[Hashable] | None = None
        self._groups: dict[Hashable, OrderingKey] = {}
        self._out: dict[int, OrderingKey] = {}
        self._paused: set[int] = set()
        self._waiting: dict[int, OrderingKey] = {}
        # Ordered dicts: the first entry of a plain dict is slow to find after many removals.
        self._free: OrderedDict[OrderingKey, None] = OrderedDict()
        self._held: dict[object, OrderedDict[OrderingKey, None]] = {}
        self._redelivered: set[int] = set()
        self._oldest: list[int] = []
        self._ordered: list[int] | None = None

    def __contains__(self, key: Hashable) -> bool:
        return key in self._groups

    def __len__(self) -> int:
        return len(self._groups)

    # --- waiting messages -------------------------------------------------------------------------

    def wait(self, key: Hashable, position: int, *, redelivered: bool) -> None:
        """Add a message that waits for its key."""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = OrderingKey(key)
        heappush(group.waiting, position)
        self._waiting[position] = group
        if self._ordered is not None:
            insort(self._ordered, position)
        self.count += 1
        if redelivered:
            self._redelivered.add(position)
        heappush(self._oldest, position)
        # Positions that no longer wait stay in the heap until they are its head: make it new before
        # they are more than half of it.
        if len(self._oldest) > 2 * self.count + _SLACK:
            self._oldest = list(self._waiting)
            heapify(self._oldest)
        self._file(group)

    def take(self, position: int) -> tuple[Hashable, bool]:
        """Remove a waiting message; return its key, and whether it may be redelivered."""
        group = self._waiting.pop(position)
        if self._ordered is not None:
            # Kept sorted: sorting all again for each message would take far longer.
            del self._ordered[bisect_left(self._ordered, position)]
        # A heap removes its head only, and the message need not be it: drop what has become stale.
        while group.waiting and self._waiting.get(group.waiting[0]) is not group:
            heappop(group.waiting)
        self.count -= 1
        redelivered = position in self._redelivered
        self._redelivered.discard(position)
        self._file(group)
        return group.key, redelivered

    def first_free(self) -> int:
        """Return the first message of a key that is free; -1 if there is none."""
        # The loop takes the first entry, which is the key that has been free for the longest.
        for group in self._free:
            return group.waiting[0]
        return NOTHING

    def first_of(self, holder: object) -> int:
        """Return the next message of a key that this holder has; -1 if there is none."""
        for group in self._held.get(holder, ()):
            return group.waiting[0]
        return NOTHING

    def goes_on(self, key: Hashable, holder: object) -> bool:
        """True if a holder may get another message of its key, and none of that key waits."""
        group = self._groups.get(key)
        return (
            group is not None
            and group.out > 0
            and group.holder is holder
            and not group.blocked
            and not group.waiting
        )

    def oldest(self) -> int:
        """Return the oldest waiting message; -1 if there is none."""
        while self._oldest:
            if self._oldest[0] in self._waiting:
                return self._oldest[0]
            heappop(self._oldest)
        return NOTHING

    def waits(self, position: int) -> bool:
        """True if a message waits."""
        return position in self._waiting

    def was_out(self, position: int) -> bool:
        """True if a waiting message may have been delivered before."""
        return position in self._redelivered

    def after(self, position: int) -> int:
        """Return the first waiting message from a position on; -1 if there is none."""
        if self._ordered is None:
            self._ordered = sorted(self._waiting)
        index = bisect_left(self._ordered, position)
        return self._ordered[index] if index < len(self._ordered) else NOTHING

    def may_go(self, position: int, holder: object) -> bool:
        """True if a waiting message is the next of its key, for this holder."""
        group = self._waiting[position]
        free = group.holder is None or group.holder is holder
        return free and not group.blocked and group.waiting[0] == position

    def is_free(self, key: Hashable) -> bool:
        """True if no delivery of a key is out."""
        group = self._groups.get(key)
        return group is None or not group.out

    def key_at(self, position: int) -> Hashable:
        """Return the key of a waiting message."""
        return self._waiting[position].key

    def positions(self) -> list[int]:
        """Return all waiting messages in order."""
        return sorted(self._waiting)

    # --- deliveries -------------------------------------------------------------------------------

    def hold(self, position: int, key: Hashable, holder: object) -> None:
        """Note that a message of a key is out: its holder has the key now."""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = OrderingKey(key)
        # With deliveries out the key has its holder; a second one would break the order.
        if not group.out:
            group.holder = holder
        group.out += 1
        self._out[position] = group
        self._file(group)

    def pause(self, position: int) -> bool:
        """Block the key of a failed delivery that waits for its retry.

        Returns:
            Whether it was out.
        """
        group = self._out.get(position)
        if group is None:
            return False
        self._leave(group)
        group.blocked = True
        self._paused.add(position)
        return True

    def release_paused(self) -> None:
        """Unblock the keys of messages that waited for their retry and were purged."""
        for position in list(self._paused):
            self.release(position)

    def release(self, position: int) -> Hashable | None:
        """End a delivery, settled or requeued; return its key, None if it has none."""
        group = self._out.pop(position, None)
        if group is None:
            return None
        self._paused.discard(position)
        self._leave(group)
        group.out -= 1
        if group.out == 0:
            # All that could be requeued has been, so the oldest waiting message is the next.
            group.holder = None
            group.blocked = False
        self._file(group)
        return group.key

    def restore(self, key: Hashable, position: int, *, redelivered: bool) -> None:
        """Add a requeued message, and block its key until all deliveries of that key ended.

        Those deliveries may be requeued, too, and then the oldest has to be first again.
        """
        group = self._groups.get(key)
        if group is not None and group.out:
            self._leave(group)
            group.blocked = True
        self.wait(key, position, redelivered=redelivered)

    def _leave(self, group: OrderingKey) -> None:
        """Remove a key from the lists of those with a next message."""
        self._free.pop(group, None)
        held = self._held.get(group.holder)
        if held is not None:
            held.pop(group, None)
            if not held:
                del self._held[group.holder]

    def _file(self, group: OrderingKey) -> None:
        """Add a key to the list in which its next message is found."""
        if self.changed is not None:
            self.changed.add(group.key)
        if not group.waiting:
            self._leave(group)
            # There may be as many keys as messages, so one without messages is not kept.
            if not group.out:
                self._groups.pop(group.key, None)
        elif group.holder is None:
            self._free[group] = None
        elif not group.blocked:
            self._free.pop(group, None)
            held = self._held.get(group.holder)
            if held is None:
                held = self._held[group.holder] = OrderedDict()
            held[group] = None
        else:
            self._leave(group)
