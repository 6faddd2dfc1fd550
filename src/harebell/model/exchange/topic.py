"""Topic exchange: binding keys are patterns over the words of the routing key (AMQP 0-9-1 3.1.3.3).

Words are what stands between dots; empty words count, but an empty key has no word at all. `*`
stands for one word, `#` for none or more. Patterns live in a trie, one node per word, so the work
follows the routing key and not the number of bindings:

    root -- "flights" -- "*" ---- "JFK"      flights.*.JFK
                     `-- "#"                 flights.#

Matching walks all nodes that the words so far can lead to at once, each at most once per word, so a
pattern of many `#` cannot blow up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange

if TYPE_CHECKING:
    from harebell.model.queue.kind import Queue

ONE = "*"
MANY = "#"


class Node:
    """One word of the patterns that share a beginning.

    Args:
        stays: whether the word is `#`, so that any further word may end here too.
    """

    __slots__ = ("bindings", "children", "many", "one", "stays")

    def __init__(self, stays: bool = False) -> None:
        self.stays = stays
        self.children: dict[str, Node] = {}
        self.one: Node | None = None
        self.many: Node | None = None
        self.bindings: list[Binding] = []

    def child(self, word: str) -> Node | None:
        """The node after `word` of a pattern."""
        if word == ONE:
            return self.one
        if word == MANY:
            return self.many
        return self.children.get(word)

    def grow(self, word: str) -> Node:
        """The node after `word` of a pattern, made when it is missing."""
        node = self.child(word)
        if node is None:
            node = Node(word == MANY)
            if word == ONE:
                self.one = node
            elif word == MANY:
                self.many = node
            else:
                self.children[word] = node
        return node

    def cut(self, word: str) -> None:
        """Forget the node after `word`."""
        if word == ONE:
            self.one = None
        elif word == MANY:
            self.many = None
        else:
            del self.children[word]

    def bare(self) -> bool:
        """Whether nothing ends or goes on here."""
        return not (self.bindings or self.children or self.one or self.many)


def key_words(key: str) -> list[str]:
    """The words of a key: zero or more, delimited by dots (AMQP 0-9-1 3.1.3.3)."""
    return key.split(".") if key else []


def pattern_words(pattern: str) -> list[str]:
    """The words of a pattern; a run of `#` means the same as one of them."""
    words: list[str] = []
    for word in key_words(pattern):
        if word != MANY or not words or words[-1] != MANY:
            words.append(word)
    return words


class TopicExchange(Exchange):
    """Patterns in a trie."""

    KIND = "topic"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._root = Node()

    def added(self, binding: Binding) -> None:
        """Grow the pattern's branch."""
        node = self._root
        for word in pattern_words(binding.routing_key):
            node = node.grow(word)
        node.bindings.append(binding)

    def removed(self, binding: Binding) -> None:
        """Cut what only this pattern needed."""
        words = pattern_words(binding.routing_key)
        path = [self._root]
        for word in words:
            node = path[-1].child(word)
            assert node is not None, "a binding that was added has its branch"
            path.append(node)
        path[-1].bindings.remove(binding)
        for depth in range(len(words), 0, -1):
            if not path[depth].bare():
                break
            path[depth - 1].cut(words[depth - 1])

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Destinations whose pattern fits the message's key."""
        reached = _with_many({self._root})
        for word in key_words(message.routing_key):
            following: set[Node] = set()
            for node in reached:
                if node.stays:
                    following.add(node)
                child = node.children.get(word)
                if child is not None:
                    following.add(child)
                if node.one is not None:
                    following.add(node.one)
            if not following:
                return []
            reached = _with_many(following)
        return [binding.destination for node in reached for binding in node.bindings]


def _with_many(nodes: set[Node]) -> set[Node]:
    """The nodes, and those that a `#` leads to without taking a word."""
    reached = set(nodes)
    for start in nodes:
        node = start.many
        while node is not None and node not in reached:
            reached.add(node)
            node = node.many
    return reached
