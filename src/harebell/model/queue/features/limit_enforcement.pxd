cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.features.head_expiry cimport check_head
from harebell.model.queue.features.limits cimport Limits
from harebell.model.queue.features.queue_internals cimport QueueInternals
from harebell.model.queue.features.ready_bytes cimport subtract_ready_bytes
from harebell.model.queue.order.contract cimport MessageOrder

cdef int _TRIMMED

@cython.locals(limits=Limits)
cpdef bint refuse_if_full(
    QueueInternals queue, Message message, long long ready, long long byte_count
) except -1
@cython.locals(limits=Limits)
cpdef int check_limits(QueueInternals queue) except -1
@cython.locals(
    limits=Limits,
    order=MessageOrder,
    message=Message,
    position="long long",
    dropped=int,
    limit=int,
    in_turns=bint,
    unread=bint,
)
cpdef int trim(QueueInternals queue) except -1
@cython.locals(limits=Limits)
cpdef int begin_count(QueueInternals queue) except -1
@cython.locals(limits=Limits)
cdef bint _go_on_later(QueueInternals queue) except -1
@cython.locals(limits=Limits)
cdef bint _goes_on_later(QueueInternals queue) except -1
