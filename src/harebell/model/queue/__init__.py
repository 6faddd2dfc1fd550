"""Queues: one class that is assembled of a message order and features, and the stream.

    contract.py        what the other parts of the broker use of any queue
    factory.py         choose by the arguments the queue class, its order and its features
    queue.py           a message from its publication to its end, with an order/ and features/
    stream.py          a log that many consumers read; offsets.py: where one begins, tracking.py:
                       where it was
    reply.py           direct reply-to
    arguments.py       which queue knows which argument
    browse.py          look at messages without taking them; browse_cursor.py does it in slices
    position_range.py  where messages are, for leases and bulk readers

`docs/internals/queues.md` has the reasons.
"""
