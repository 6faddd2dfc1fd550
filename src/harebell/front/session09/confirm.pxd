from harebell.front.session09.connection cimport Connection

cdef class Confirms:
    cdef Connection _connection
    cdef int _number
    cdef readonly unsigned long long taken
    cdef readonly unsigned long long sent
    cdef bint _waiting

    cpdef int published(self, int rejected) except -1
    cpdef int flush(self) except -1
