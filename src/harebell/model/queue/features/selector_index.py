"""An index over selectors that compare one header or property with constants.

    x = 'a'              group 1          a message with x = 'b' is offered to group 2 only:
    x = 'b' AND y > 5    group 2          one look, whatever the number of groups
    x IN ('a', 'c')      group 3

A group joins the index when it has looked at everything. From then on the index has the position,
which its groups share, and offers each message to those that may want it; they test it whole.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from harebell.base.c_types import C, Done, i64
from harebell.kernels.conditions import Condition
from harebell.model.queue.features.selector_group import SelectorGroup

if TYPE_CHECKING:
    from harebell.model.filter.indexing import Equality


class SelectorIndex:
    """The groups of one queue whose selectors compare one property.

    Args:
        equality: what one of them compares.
        group: it has looked at everything.

    Attributes:
        node: the property.
        read: gets its value.
        scout: the position that the groups share, and what is to be looked at again.
        groups: how many there are.
        pending: whether there may be messages to look at.
    """

    def __init__(self, equality: Equality, group: SelectorGroup) -> None:
        self.node = equality.node
        self.scout: SelectorGroup = SelectorGroup(None, 0, 0)
        self.scout.cursors = group.cursors
        self.groups: list[SelectorGroup] = []
        self.pending = False
        self.read: Condition = Condition(equality.node, True)
        self._by_value: dict[object, list[SelectorGroup]] = {}

    def add(self, group: SelectorGroup) -> Done:
        """Add a group that has looked at everything, as the index has."""
        group.index = self
        group.cursors = self.scout.cursors
        self.groups.append(group)
        for value in _values(group):
            self._by_value.setdefault(value, []).append(group)
        return 0

    def remove(self, group: SelectorGroup) -> Done:
        """Remove a group; it has a position of its own again."""
        group.index = None
        group.cursors = list(group.cursors)
        self.groups.remove(group)
        for value in _values(group):
            groups = self._by_value[value]
            groups.remove(group)
            if not groups:
                del self._by_value[value]
        return 0

    def offer(self, value: object, position: i64) -> C[list[SelectorGroup] | None]:
        """Offer a message to the groups that may want it; return them, None if there are none."""
        groups = self._by_value.get(value)
        if groups is None:
            return None
        group: SelectorGroup
        for group in groups:
            group.offered(position)
        return groups

    def look_again(self) -> Done:
        """Have the groups look themselves, in their turns: there is more than fits in this one."""
        group: SelectorGroup
        for group in self.groups:
            group.ended = False
        return 0


def _values(group: SelectorGroup) -> frozenset[Hashable]:
    assert group.equality is not None, "it is in an index"
    return group.equality.values
