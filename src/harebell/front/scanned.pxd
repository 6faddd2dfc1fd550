from harebell.front.link cimport Link

cdef class ScannedLink(Link):
    cdef public object scanner
