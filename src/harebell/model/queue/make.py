"""Making queues: which kind the arguments of a declaration mean, and one of that kind.

A declaration and a restart both come through here, so that a queue comes back as what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.ports import Store
from harebell.model.queue.arguments import QUEUE_TYPE
from harebell.model.queue.classic import ClassicQueue
from harebell.model.queue.kind import Queue


def kind_of(arguments: Mapping[str, Any]) -> str:
    """The name of the kind that checked arguments mean; what stands in the definitions."""
    kind: str = arguments.get(QUEUE_TYPE, ClassicQueue.KIND)
    return kind


def make_queue(
    kind_name: str,
    name: str,
    vhost: str,
    store: Store,
    identity: str,
    options: Mapping[str, Any],
) -> Queue:
    """A queue of a kind over its log, which is opened here.

    Args:
        kind_name: from `kind_of`.
        name: the queue's name.
        vhost: the name of its vhost.
        store: opens logs.
        identity: of its log, from `store.new_identity()` or the definitions.
        options: the other arguments of `Queue`, `durable` among them.

    Raises:
        LookupError: there is no such kind in this version.
    """
    if kind_name != ClassicQueue.KIND:
        raise LookupError(f"there is no queue kind '{kind_name}'")
    log = store.open_log(identity, durable=options["durable"])
    queue = ClassicQueue(name, vhost, log, **options)
    queue.identity = identity
    return queue
