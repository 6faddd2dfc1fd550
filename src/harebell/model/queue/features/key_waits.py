"""Messages that a group of selective consumers wants, and that wait for their ordering keys.

    key     waiting       a message of the key was settled
    "a"     3  9  12      next: 3, which is tried again; 9 and 12 are not looked at
    "b"     5

Only the first message of a key is tried, and only after the key has changed: very many messages may
wait for one key.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heapify, heappop, heappush

NOTHING = -1


class KeyWaits:
    """What waits for ordering keys.

    Attributes:
        count: how many messages wait.
    """

    def __init__(self) -> None:
        self.count = 0
        # By key: a heap of positions.
        self._waiting: dict[Hashable, list[int]] = {}
        # A heap of first messages whose keys have changed, and their keys.
        self._tried: list[int] = []
        self._keys: dict[int, Hashable] = {}

    def __bool__(self) -> bool:
        """True if a message is to be tried."""
        return bool(self._tried)

    def add(self, key: Hashable, position: int) -> None:
        """Note that a message waits for its key."""
        heappush(self._waiting.setdefault(key, []), position)
        self.count += 1

    def changed(self, keys: Iterable[Hashable]) -> bool:
        """Try the first messages of these keys; return whether there are any."""
        for key in keys:
            if key in self._waiting:
                self._try(key)
        return bool(self._tried)

    def _try(self, key: Hashable) -> None:
        position = self._waiting[key][0]
        if position not in self._keys:
            self._keys[position] = key
            heappush(self._tried, position)

    def next(self) -> int:
        """Return the first message that is to be tried; -1 if there is none."""
        return self._tried[0] if self._tried else NOTHING

    def leave(self) -> None:
        """Remove the message that `next` returns, and try the next one of its key."""
        position = heappop(self._tried)
        key = self._keys.pop(position)
        heap = self._waiting[key]
        if heap[0] == position:
            heappop(heap)
        else:
            # An older one was requeued meanwhile.
            heap.remove(position)
            heapify(heap)
        self.count -= 1
        if heap:
            self._try(key)
        else:
            del self._waiting[key]

    def stay(self) -> None:
        """Do not try the message that `next` returns until its key has changed again."""
        del self._keys[heappop(self._tried)]
