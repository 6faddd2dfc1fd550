cimport cython
from harebell.base.message cimport Message
from harebell.model.consumer cimport Consumer
from harebell.model.queue.features.queue_internals cimport QueueInternals
from harebell.model.queue.features.ready_bytes cimport subtract_ready_bytes
from harebell.model.queue.order.keyed cimport KeyedOrder

cdef int _SCAN_MAX

cdef class KeyDispatch:
    cdef QueueInternals _queue
    cdef KeyedOrder _order

    cpdef object drain(self)
    @cython.locals(
        queue=QueueInternals, consumer=Consumer, order=KeyedOrder, position="long long",
        message=Message, passed=int, goes_on=bint
    )
    cpdef object deal(self)
    @cython.locals(
        queue=QueueInternals, order=KeyedOrder, position="long long", redelivered=bint,
        taker=Consumer
    )
    cdef object _deliver(self, Message message, Consumer consumer, bint goes_on)
    @cython.locals(consumer=Consumer)
    cdef Consumer _holder(self)
    @cython.locals(order=KeyedOrder, position="long long", message=Message)
    cpdef Message take_free(self)
