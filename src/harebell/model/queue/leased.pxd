cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.model.queue.overflow cimport Overflow
from harebell.model.queue.ready cimport ReadyOrder
from harebell.model.queue.sparing cimport SparingQueue

cdef int _RANGES
cdef int _SINGLE
cdef int _COUNTED
cdef str _EXPIRED

cdef class LeasedQueue(SparingQueue):
    cpdef list _levels(self)
    cpdef int _recount(self) except -1
    cpdef tuple _place(self, long long position)
    cpdef int _give_back(self, object runs) except -1
    cpdef bint _one_by_one(self) except -1
    @cython.locals(overflow=Overflow)
    cpdef object claim(self, long long messages, long long octets, object holder)
    @cython.locals(order=ReadyOrder, count="long long", size="long long", left="long long")
    cpdef object _claim_runs(self, long long messages, long long octets)
    @cython.locals(
        message=Message,
        position="long long",
        here="long long",
        level=int,
        log=Log,
        count="long long",
        size="long long",
        taking="long long",
    )
    cpdef object _claim_singly(self, long long messages, long long octets, object holder)
    @cython.locals(overflow=Overflow)
    cdef int _came_before(self, long long position, Message message) except -1
    cdef int _untake(self, long long position) except -1
    cpdef int withhold_claim(self, object runs, object holder) except -1
    cpdef int settle_claim(self, object runs, long long messages) except -1
    @cython.locals(overflow=Overflow)
    cpdef int release_claim(self, object runs, long long messages) except -1
    @cython.locals(log=Log, message=Message, position="long long")
    cdef int _count_again(self, Overflow overflow, object runs, long long messages) except -1
    cdef int _look_ahead(self) except -1
