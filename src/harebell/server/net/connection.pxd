cimport cython
from harebell.front.common.base_connection cimport BaseConnection
from harebell.server.event_turns cimport EventTurns

cdef object _OPEN
cdef Py_ssize_t _FULL_READ
cdef Py_ssize_t _PACED_READ
cdef Py_ssize_t _PIECE_BYTES

cdef class SocketEnd:
    cdef object _addresses
    cdef object _app
    cdef object _dialect
    cdef bint _ended
    cdef object _ending
    cdef bint _full
    cdef int _full_reads
    cdef bint _going_on
    cdef object _peer
    cdef object _plain
    cdef bint _reading
    cdef object _rest
    cdef bint _resting
    cdef object _securing
    cdef object _tls
    cdef EventTurns _turns
    cdef public BaseConnection connection
    cdef public object recorder
    cdef public object transport

    @cython.locals(connection=BaseConnection)
    cpdef object get_buffer(self, object sizehint)
    @cython.locals(connection=BaseConnection, now=double)
    cpdef object buffer_updated(self, Py_ssize_t nbytes)
    @cython.locals(connection=BaseConnection)
    cpdef object flush(self, double now)
    @cython.locals(connection=BaseConnection)
    cpdef object _go_on(self)
    cdef object _write_rest(self)
    cdef object _take_turns(self)
    cdef object _keep_pace(self)
    @cython.locals(connection=BaseConnection, wanted=bint)
    cdef object _adjust_reading(self)
    cdef Py_ssize_t _unsent_bytes(self) except -1
