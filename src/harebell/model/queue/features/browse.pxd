cimport cython
from harebell.base.message cimport Message
from harebell.model.consumer cimport Consumer
from harebell.model.queue.features.queue_internals cimport QueueInternals
from harebell.model.queue.order.contract cimport MessageOrder

cdef int _MAX

cdef class Browser:
    cdef readonly Consumer consumer
    cdef readonly list cursors

cdef class Browsing:
    cdef QueueInternals _queue
    cdef MessageOrder _order
    cdef list _browsers

    cpdef int add(self, Consumer consumer) except -1
    cpdef bint remove(self, Consumer consumer) except -1
    @cython.locals(browser=Browser)
    cpdef int show_all(self) except -1
    @cython.locals(
        consumer=Consumer, order=MessageOrder, message=Message, position="long long", shown=int,
        redelivered=bint
    )
    cdef int _show(self, Browser browser) except -1
