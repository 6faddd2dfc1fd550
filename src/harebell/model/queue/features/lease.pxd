cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.model.queue.features.head_expiry cimport check_head, expire_heads
from harebell.model.queue.features.limit_enforcement cimport begin_count, check_limits
from harebell.model.queue.features.limits cimport Limits
from harebell.model.queue.features.queue_internals cimport QueueInternals
from harebell.model.queue.features.ready_bytes cimport (
    add_ready_bytes, add_ready_bytes_at, subtract_ready_bytes
)
from harebell.model.queue.order.contract cimport MessageOrder
from harebell.model.queue.order.fifo cimport FifoOrder
from harebell.model.queue.order.keyed cimport KeyedOrder

cdef int _SINGLE
cdef int _RANGES

cdef class Claims:
    cdef QueueInternals _queue
    cdef MessageOrder _order

    @cython.locals(queue=QueueInternals, order=MessageOrder, limits=Limits)
    cpdef object claim(self, long long messages, long long byte_count, object holder)
    @cython.locals(order=FifoOrder, count="long long", size="long long", remaining="long long")
    cpdef object _claim_ranges(self, long long messages, long long byte_count)
    @cython.locals(
        queue=QueueInternals,
        order=MessageOrder,
        message=Message,
        position="long long",
        in_log="long long",
        redelivered=bint,
        level=int,
        bits=int,
        log=Log,
        count="long long",
        size="long long",
        message_bytes="long long",
    )
    cpdef object _claim_singly(self, long long messages, long long byte_count)
    @cython.locals(
        queue=QueueInternals,
        log=Log,
        size="long long",
        examined="long long",
        position="long long",
        message_bytes="long long",
        message=Message,
        expired=bint,
    )
    cpdef object _claim_keyed(
        self, KeyedOrder order, long long messages, long long byte_count, object holder
    )
    @cython.locals(queue=QueueInternals)
    cpdef int settle(self, object runs, long long messages) except -1
    @cython.locals(queue=QueueInternals)
    cpdef int release(self, object runs, long long messages) except -1
    @cython.locals(queue=QueueInternals, order=MessageOrder, fifo=FifoOrder, position="long long")
    cdef int _release_singly(self, object runs) except -1
    cpdef object position_of(self, long long level, long long position)
