cimport cython

cdef class PairSet:
    cdef public tuple pairs
    cdef public Py_ssize_t slot
    cdef public long long uses
    cdef public Py_ssize_t filed

cdef class PairIndex:
    cdef readonly long long cost
    cdef dict _ids
    cdef list _uses
    cdef list _free
    cdef list _all
    cdef list _any
    cdef dict _always
    cdef dict _sets
    cdef bytearray _present
    cdef bytearray _seen

    @cython.locals(flags=bytearray, seen=bytearray, pair_set=PairSet, slot=Py_ssize_t,
                   each=Py_ssize_t, pairs=tuple)
    cdef int _match_sets(self, dict filed, list slots) except -1
