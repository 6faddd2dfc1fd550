"""Delete queues and exchanges, in steps: many bindings take several turns."""

from __future__ import annotations

from collections.abc import Callable

from harebell.auth.permissions import CONFIGURE
from harebell.base.work import Step
from harebell.front.common.permission import EXCHANGE, QUEUE, check
from harebell.front.operations.caller import Caller
from harebell.model.exchange import Exchange
from harebell.model.queue.contract import Queue
from harebell.model.vhost import VHost


def deletable_queue(caller: Caller, name: str, *, if_unused: bool, if_empty: bool) -> Queue | None:
    """Find a queue to delete; None if it does not exist.

    Raises:
        Refusal: the user may not configure it, or one of the conditions does not hold.
    """
    check(caller, CONFIGURE, QUEUE, name)
    return caller.vhost.find_queue_to_delete(
        name, caller.owner, if_unused=if_unused, if_empty=if_empty
    )


def deletable_exchange(caller: Caller, name: str, *, if_unused: bool = False) -> Exchange | None:
    """Find an exchange to delete; None if it does not exist.

    Raises:
        Refusal: the user may not configure it, or it is in use with if-unused.
    """
    check(caller, CONFIGURE, EXCHANGE, name)
    return caller.vhost.find_exchange_to_delete(name, if_unused=if_unused)


def deletion(vhost: VHost, thing: Queue | Exchange | None, finish: Callable[[], object]) -> Step:
    """Return the steps that delete a queue or an exchange: its bindings first.

    The conditions of the deletion are checked at the beginning and at the end: a queue that must be
    empty and is not any more is kept, without the bindings that were removed.

    Args:
        vhost: of the queue or exchange.
        thing: the queue or exchange; None if it does not exist.
        finish: deletes it without bindings, and replies.
    """

    def step() -> bool:
        if thing is not None and not vhost.unbind_some(thing):
            return False
        finish()
        return True

    return step


def exchange_deletion(
    vhost: VHost,
    name: str,
    exchange: Exchange | None,
    answer: Callable[[], object] | None = None,
) -> Step:
    """Return the steps that delete an exchange, unless another has its name by then.

    Args:
        vhost: of the exchange.
        name: of the exchange.
        exchange: None if it does not exist.
        answer: called afterwards; None for nothing.
    """

    def finish() -> None:
        if vhost.exchanges.get(name) is exchange:
            vhost.delete_exchange(name)
        if answer is not None:
            answer()

    return deletion(vhost, exchange, finish)
