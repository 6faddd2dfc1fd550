"""Delete queues and exchanges, in steps: many bindings take several turns."""

from __future__ import annotations

from collections.abc import Callable

from harebell.auth.permissions import CONFIGURE
from harebell.base.work import Step
from harebell.front.common.permission import EXCHANGE, QUEUE, check
from harebell.front.operations.caller import Caller
from harebell.model.exchange import Exchange
from harebell.model.queue.contract import Queue
from harebell.model.reserved import check_exchange_deletion
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
    caller.vhost.check_not_default(name)
    check_exchange_deletion(name, caller.vhost.name)
    check(caller, CONFIGURE, EXCHANGE, name)
    return caller.vhost.find_exchange_to_delete(name, if_unused=if_unused)


def deletion(vhost: VHost, resource: Queue | Exchange | None, finish: Callable[[], object]) -> Step:
    """Return the steps that delete a queue or an exchange: its bindings first.

    The conditions of the deletion are checked at the beginning and at the end: a queue that must be
    empty and is not any more is kept, without the bindings that were removed.

    Args:
        vhost: of the queue or exchange.
        resource: the queue or exchange; None if it does not exist.
        finish: deletes it without bindings, and replies.
    """

    def step() -> bool:
        # Bindings may be many, and each changes routes: with them gone, the rest is quick.
        if resource is not None and not vhost.unbind_some(resource):
            return False
        finish()
        return True

    return step


def queue_deletion(
    caller: Caller,
    name: str,
    queue: Queue | None,
    answer: Callable[[int], object],
    *,
    if_unused: bool = False,
    if_empty: bool = False,
) -> Step:
    """Return the steps that delete a queue, unless another has its name by then.

    Args:
        caller: as for `deletable_queue`, which has found the queue.
        name: of the queue.
        queue: None if it does not exist.
        answer: called afterwards with how many messages were deleted with it.
        if_unused: whether a queue with consumers is kept; checked again at the end.
        if_empty: whether a queue with messages is kept; checked again at the end.
    """
    vhost = caller.vhost

    def finish() -> None:
        count = 0
        # Not by name alone: a queue that was declared meanwhile must not be deleted.
        if vhost.queues.get(name) is queue:
            count = vhost.delete_queue(name, caller.owner, if_unused=if_unused, if_empty=if_empty)
        answer(count)

    return deletion(vhost, queue, finish)


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
