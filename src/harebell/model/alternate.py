"""What becomes of the messages of a queue that goes, when it has an alternate exchange.

Only 0-10 knows alternate exchanges of queues, so only its peers pass messages on; a queue that
expires, or that a 0-9-1 peer deletes, takes them along as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import Message, copy_message
from harebell.model.exchange.kind import ALTERNATE

if TYPE_CHECKING:
    from harebell.model.queue.kind import Queue
    from harebell.model.vhost import VHost


def send(message: Message, queue: Queue, vhost: VHost) -> bool:
    """Publish a message that a queue rejects to its alternate exchange; False without one."""
    name = queue.arguments.get(ALTERNATE)
    exchange = vhost.exchanges.get(name) if isinstance(name, str) else None
    if exchange is None:
        return False
    copy = copy_message(message, exchange.name, message.routing_key)
    for target in vhost.router.route(exchange, copy):
        if target is not queue:
            target.publish(copy)
    return True


def pass_on(queue: Queue, vhost: VHost) -> int:
    """Publish what waits in a queue to its alternate exchange, with the keys it came with.

    Returns:
        How many messages were taken; 0 when there is no such exchange.
    """
    name = queue.arguments.get(ALTERNATE)
    if not isinstance(name, str) or name not in vhost.exchanges:
        return 0
    count = 0
    # What the alternate leads back here must not be taken for ever.
    for _ in range(queue.ready_count()):
        found = queue.get()
        if found is None:
            break
        message, position, _ = found
        send(message, queue, vhost)
        queue.settle(position)
        count += 1
    return count
