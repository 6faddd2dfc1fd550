cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.bounded cimport BoundedQueue
from harebell.model.queue.overflow cimport Overflow

cdef class PromisedQueue(BoundedQueue):
    @cython.locals(overflow=Overflow)
    cpdef int admit(self, Message message) except -1
    cpdef bint withhold(self, long long position) except -1
