cimport cython
from harebell.model.consumer cimport Consumer

cdef class Rank:
    cdef readonly int priority
    cdef public Consumer head
    cdef public Py_ssize_t count

    @cython.locals(head=Consumer, last=Consumer)
    cdef int add(self, Consumer consumer) except -1
    @cython.locals(before=Consumer, after=Consumer)
    cdef int remove(self, Consumer consumer) except -1

cdef class Consumers:
    cdef public Py_ssize_t count
    cdef bint _single
    cdef bint _preempts
    cdef Consumer _active
    cdef list _ranks

    @cython.locals(rank=Rank, consumer=Consumer)
    cpdef list in_order(self)
    cpdef Consumer first(self)
    @cython.locals(rank=Rank, index=Py_ssize_t)
    cpdef int add(self, Consumer consumer) except -1
    @cython.locals(rank=Rank)
    cpdef bint remove(self, Consumer consumer) except -1
    @cython.locals(consumer=Consumer)
    cpdef list take_all(self)
    @cython.locals(rank=Rank, low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
    cdef Rank _rank_of(self, Consumer consumer)
    @cython.locals(rank=Rank, consumer=Consumer)
    cpdef Consumer pick(self)
    cpdef bint may_begin_with(self, Consumer consumer) except -1
    @cython.locals(rank=Rank, consumer=Consumer, best=Consumer)
    cpdef Consumer pick_least_busy(self)
    @cython.locals(rank=Rank)
    cpdef int served(self, Consumer consumer) except -1
    @cython.locals(active=Consumer, first=Consumer)
    cpdef Consumer active(self)
