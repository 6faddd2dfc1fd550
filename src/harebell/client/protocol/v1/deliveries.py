"""Deliveries of a session that have no outcome yet, and how they get one.

The program's tags count from 1 in the order of arrival, as the broker's delivery-ids do, so a run
of tags is a run of ids.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from harebell.client.protocol.v1.endpoint import Endpoint
from harebell.client.protocol.v1.links import NUMBERS, ReceiverLink
from harebell.client.protocol.v1.transactions import Transactions
from harebell.wire.v1.composites import Released


class _Delivery(NamedTuple):
    number: int
    link: ReceiverLink


class Deliveries:
    """The unsettled deliveries.

    Args:
        endpoint: the session on the wire.
        transactions: the present transaction; acknowledgements are part of it.
    """

    def __init__(self, endpoint: Endpoint, transactions: Transactions) -> None:
        self._endpoint = endpoint
        self._transactions = transactions
        self._last = 0
        self._out: dict[int, _Delivery] = {}
        # Acknowledged in the present transaction: a rollback makes them unsettled again.
        self._done: dict[int, _Delivery] = {}
        self._lingering: set[ReceiverLink] = set()

    def add(self, link: ReceiverLink, number: int, settled: bool) -> int:
        """Add a delivery; return its tag.

        Args:
            link: what it came over.
            number: its delivery-id.
            settled: whether it needs no outcome.
        """
        self._last += 1
        if not settled:
            self._out[self._last] = _Delivery(number, link)
            link.unsettled += 1
        return self._last

    def clear(self) -> None:
        """Forget all: the session has ended."""
        self._out.clear()
        self._done.clear()
        self._lingering.clear()

    def linger(self, link: ReceiverLink) -> None:
        """Detach a link with its last delivery."""
        self._lingering.add(link)

    def settle(self, tag: int, outcome: Any, *, multiple: bool) -> None:
        """Send an outcome for a delivery, or for all up to it; for all if the tag is 0.

        Raises:
            ValueError: the delivery is settled already, or there was none.
        """
        chosen = self._chosen(tag, multiple)
        transacted = bool(self._transactions.txn_id)
        state = self._transactions.state(outcome) if transacted else outcome
        links: set[ReceiverLink] = set()
        first = last = -1
        for each in chosen:
            number, link = delivery = self._out.pop(each)
            if link.closed or link.detaching:
                # The broker has taken it back with the link.
                continue
            if transacted:
                self._done[each] = delivery
            else:
                link.unsettled -= 1
                links.add(link)
            if first >= 0 and number == (last + 1) % NUMBERS:
                last = number
                continue
            if first >= 0:
                self._endpoint.dispose(first, last, state, settled=not transacted)
            first = last = number
        if first >= 0:
            self._endpoint.dispose(first, last, state, settled=not transacted)
        self._settled(links)

    def _chosen(self, tag: int, multiple: bool) -> list[int]:
        if not multiple:
            if tag not in self._out:
                raise ValueError(f"delivery {tag} is not out")
            return [tag]
        chosen = []
        for each in self._out:
            if tag and each > tag:
                break
            chosen.append(each)
        return chosen

    def _settled(self, links: set[ReceiverLink]) -> None:
        for link in links:
            if link not in self._lingering:
                self._endpoint.replenish(link)
            elif not link.unsettled:
                self._lingering.discard(link)
                self._endpoint.detach(link)

    def release(self, tag: int) -> None:
        """Give a delivery back that the program has not seen."""
        self.settle(tag, Released(), multiple=False)

    def committed(self) -> None:
        """Settle what the transaction has acknowledged."""
        done, self._done = self._done, {}
        links = set()
        for number, link in done.values():
            if not link.closed and not link.detaching:
                self._endpoint.dispose(number, number, None)
                link.unsettled -= 1
                links.add(link)
        self._settled(links)

    def rolled_back(self) -> None:
        """Make what the transaction has acknowledged unsettled again."""
        done, self._done = self._done, {}
        self._out = dict(sorted((self._out | done).items()))
