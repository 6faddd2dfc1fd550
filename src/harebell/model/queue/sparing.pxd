cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.browsed cimport BrowsedQueue
from harebell.model.queue.overflow cimport Overflow

cdef int _FILE
cdef int _STREAM
cdef int _SCAN
cdef int _NOTHING

cdef class SparingQueue(BrowsedQueue):
    @cython.locals(message=Message)
    cdef bint _may_skip(self) except -1
    cdef Message _victim(self)
    @cython.locals(message=Message, found=Message, position="long long", at="long long")
    cdef Message _least_wanted(self)
