cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.staging_order cimport StagingOrder
from harebell.model.queue.overflow cimport Overflow
from harebell.model.queue.weighed cimport WeighedQueue

cdef int _FULL
cdef int _SPARED

cdef class StagingQueue(WeighedQueue):
    cdef long long _hidden
    cdef long long _hidden_octets
    cdef bint _hidden_due

    cdef StagingOrder _order_for(self, Message message)
    cpdef int begin_batch(self) except -1
    cpdef int stage(self, Message message) except -1
    @cython.locals(overflow=Overflow, full=bint)
    cdef int _publish_hidden(self, Message message) except -1
    cdef Message _hide(self, Message message)
    cpdef int commit_batch(self) except -1
    cpdef int roll_back_batch(self) except -1
    @cython.locals(overflow=Overflow)
    cdef int _end_batch(self, bint roll_back) except -1
