cimport cython
from harebell.base.message cimport Message, copy_message
from harebell.model.queue.order.contract cimport MessageOrder

cdef int _FAILURES
cdef int _REJECTIONS_SHIFT

cdef class FailureCounts:
    cdef MessageOrder _order
    cdef long long _at_first
    cdef object _failed

    @cython.locals(order=MessageOrder, count=int)
    cpdef Message shown(self, Message message)
    @cython.locals(count=int)
    cpdef int end(self, long long position) except -1
