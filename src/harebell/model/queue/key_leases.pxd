cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.model.queue.grouped cimport GroupedQueue
from harebell.model.queue.ready cimport ReadyOrder

cdef int _LOOKED_MOST
cdef int _KEYED_MOST
cdef int _RANGES

cdef class KeyLeasedQueue(GroupedQueue):
    cpdef object claim(self, long long messages, long long octets, object holder)
    cpdef bint _one_by_one(self) except -1
    @cython.locals(
        log=Log,
        size="long long",
        looked="long long",
        position="long long",
        taking="long long",
        message=Message,
        expired=bint,
    )
    cpdef object _claim_singly(self, long long messages, long long octets, object holder)
    cdef int _not_yet(self, object groups) except -1
    @cython.locals(log=Log, position="long long")
    cpdef int settle_claim(self, object runs, long long messages) except -1
    @cython.locals(order=ReadyOrder, position="long long")
    cpdef int _give_back(self, object runs) except -1
    cpdef int _recount(self) except -1
    @cython.locals(log=Log, position="long long", message=Message, count="long long")
    cpdef int withhold_claim(self, object runs, object holder) except -1
