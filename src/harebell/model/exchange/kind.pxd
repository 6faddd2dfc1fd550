cdef class Exchange:
    cdef public str name
    cdef public bint durable
    cdef public bint auto_delete
    cdef public bint internal
    cdef public object arguments
    cdef public object alternate
    cdef public bint alternate_once
    cdef public dict bindings
    cdef public object bound
    cdef public bint by_key
    cdef public bint default
    cdef public dict routes
    cdef public dict older_routes
    cdef public long long routes_epoch
    cdef public long long published
    cdef public long long routed
    cdef public long long seen
    cdef public str identity
    cdef public long long examined
