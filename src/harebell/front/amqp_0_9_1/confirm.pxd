from harebell.base.counters cimport Counters
from harebell.base.ports cimport Commit
from harebell.front.amqp_0_9_1.connection cimport Connection

cdef int _REJECTED

cdef class Confirms:
    cdef Connection _connection
    cdef Commit _commit
    cdef Counters _counters
    cdef int _number
    cdef readonly unsigned long long taken
    cdef readonly unsigned long long sent
    cdef bint _waiting
    cdef long long _ticket
    cdef object _marks
    cdef Counters _details
    cdef object _sections
    cdef unsigned long long _confirmed

    cpdef int published(self, int result) except -1
    cpdef publishes_at(self, Counters details)
    cpdef count_details(self)
    cpdef int flush(self) except -1
    cdef int _wait(self) except -1
    cdef int _refuse(self) except -1
    cdef int _ack(self, unsigned long long last) except -1
