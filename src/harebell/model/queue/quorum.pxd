cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Commit, Log
from harebell.model.queue.key_leases cimport KeyLeasedQueue
from harebell.model.queue.overflow cimport Overflow
from harebell.model.queue.ready cimport ReadyOrder

cdef int _FAILURES

cdef class QuorumQueue(KeyLeasedQueue):
    cdef Commit _commit
    cdef long long _limit
    cdef bint _at_least_once
    cdef object _returned
    cdef list _back
    cdef object _leaving
    cdef object _stuck

    cpdef int requeue(self, long long position) except -1
    cpdef int give_back(self, long long position) except -1
    @cython.locals(log=Log, count=int, failures=int)
    cdef int _return(self, long long position, bint failed) except -1
    cdef int _put_back(self, long long position) except -1
    @cython.locals(order=ReadyOrder, message=Message, position="long long")
    cdef Message _take(self)
    @cython.locals(order=ReadyOrder, message=Message)
    cdef Message _peek(self)
    @cython.locals(found="long long", at=Py_ssize_t)
    cdef long long _look(self, list cursors) except -2
    cdef bint _was_out(self, long long position) except -1
    @cython.locals(out=bint)
    cdef bint _take_out(self, long long position) except -1
    cdef int _untouched(self, long long position) except -1
    cdef int _drop_ready(self) except -1
    cdef int _drop_all(self) except -1
    cpdef bint _one_by_one(self) except -1
    cdef int _untake(self, long long position) except -1
    cpdef int _recount(self) except -1
    @cython.locals(log=Log, position="long long")
    cpdef int _give_back(self, object runs) except -1
    cdef int _count_again(self, Overflow overflow, object runs, long long messages) except -1
    cdef bint _refuses(self, Overflow overflow, Message message) except -1
    @cython.locals(overflow=Overflow)
    cdef int _grown(self) except -1
    @cython.locals(message=Message)
    cdef int _bury(self, long long position, str reason) except -1
    @cython.locals(message=Message, outcome=int)
    cdef int _hand_on(
        self, long long position, str reason, set taken, long long ticket
    ) except -1
