"""What a queue of last values does when a newer message has replaced one that was ready.

`order.last_value` replaces it; it knows neither limits nor time.
"""

from __future__ import annotations

from harebell.base.c_types import Done
from harebell.model.queue.features.head_expiry import check_head
from harebell.model.queue.features.queue_internals import QueueInternals
from harebell.model.queue.features.ready_bytes import subtract_ready_bytes
from harebell.model.queue.order.last_value import LastValueOrder


def after_replacing(queue: QueueInternals, values: LastValueOrder) -> Done:
    """Subtract a replaced message from the ready bytes, and watch the expiry of the new head."""
    victim = values.victim
    if victim is not None:
        values.victim = None
        # `subtract_ready_bytes` looks there.
        values.position = values.displaced
        subtract_ready_bytes(queue, victim)
    check_head(queue)
    return 0
