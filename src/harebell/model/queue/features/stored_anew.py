"""A delivered message whose consumer gives it back with other headers: it is stored anew.

    log     | ... 7 delivered ... 12 |         7 settled, 13 out: it comes back in the place of 7
            | ... 7 settled  ... 12  13 |

In one commit, so a restart finds one of both. It is ready before messages that were never
delivered, as every requeued one; after a restart it is behind them, where the log has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.bcc import hidden, whole
from harebell.base.message import FAMILY_09_BCC, FAMILY_FILE, FAMILY_STREAM, Message
from harebell.model.limits import CHANGED_PROPERTIES_BYTES, LETTER_UNITS

if TYPE_CHECKING:
    from harebell.model.editor import Editor
    from harebell.model.queue.features.queue_internals import QueueInternals

HIDDEN = -1
"""An open batch hides the message: it is ready when the batch ends."""
_UNCHANGED = (FAMILY_FILE, FAMILY_STREAM)


def stored_anew(queue: QueueInternals, position: int, headers: Mapping[str, Any]) -> int:
    """Store a delivered message with other headers; return its new position, or HIDDEN.

    With ordering keys a message keeps its position, and thus its headers: behind others it would be
    out of order after a restart. So does a last value that was replaced, or would be another's.
    """
    context, order = queue.context, queue.order
    if context is None or queue.keyed is not None:
        return position
    message = order.read(position)
    if message is None or message.family in _UNCHANGED:
        return position
    context.timers.work.charge(LETTER_UNITS)
    changed = _changed(context.editor, message, headers)
    if len(changed.raw) > max(len(message.raw), CHANGED_PROPERTIES_BYTES):
        # A message that is given back again and again must not grow for ever.
        return position
    if queue.deduplication is not None:
        queue.deduplication.keeps(changed)
    anew = order.next_position(changed)
    if queue.values is None:
        order.keep(changed)
    elif not queue.values.keep_anew(position, changed):
        return position
    count = order.delivery_count(position)
    if count:
        order.set_delivery_count(anew, count)
    order.settle(position)
    if not order.take_out(anew):
        return HIDDEN
    # After a crash it counts as redelivered, which the log knows of whole ranges only.
    order.mark_out(anew)
    return anew


def _changed(editor: Editor, message: Message, headers: Mapping[str, Any]) -> Message:
    changed = editor.with_headers(whole(message), headers)
    if message.family == FAMILY_09_BCC:
        changed = hidden(changed)
    changed.due, changed.origin = message.due, message.origin
    changed.deliveries = message.deliveries
    return changed
