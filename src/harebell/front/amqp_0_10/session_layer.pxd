cimport cython
from harebell.base.message cimport Message, Properties
from harebell.base.ports cimport Commit
from harebell.front.amqp_0_10.connection cimport Connection
from harebell.front.operations.publishing_channel cimport PublishingChannel

cdef long long _AT_ONCE
cdef Py_ssize_t _OUTPUT_HIGH

cdef class SessionLayer(PublishingChannel):
    cdef public Connection connection
    cdef public bint attached
    cdef readonly bytes name
    cdef public long long received
    cdef public long long current
    cdef public long long done
    cdef public long long known
    cdef public long long sent
    cdef public object settled
    cdef public long long timeout
    cdef public object replay
    cdef public object expiry
    cdef public bint ended
    cdef public object holds
    cdef long long _executed
    cdef long long _reported
    cdef long long _asked
    cdef bint _enlisted
    cdef Commit _commit
    cdef long long _ticket
    cdef object _marks

    cpdef int serve(self) except -1
    cpdef int transfer(self, int flags, str destination, str routing_key, Properties properties,
                       bytes body) except -1
    cpdef bint begin(self) except -1
    cpdef int enlist(self) except -1
    cpdef int wait_for(self, long long ticket) except -1
    cpdef int complete(self) except -1
    cpdef int send_completed(self) except -1
    @cython.locals(connection=Connection)
    cpdef bint can_send(self) except -1
    @cython.locals(connection=Connection, number="long long")
    cpdef long long deliver(self, bytes command, bint redelivered, Message message) except -1
    cpdef int point(self) except -1
