cimport cython
from harebell.base.counters cimport Counters
from harebell.base.message cimport Message

cpdef int unroutable(object channel, Message message, int flags) except -1
@cython.locals(counters=Counters)
cpdef int count_return(object channel, Message message) except -1
@cython.locals(counters=Counters)
cpdef int count_drop(object channel, Message message) except -1
