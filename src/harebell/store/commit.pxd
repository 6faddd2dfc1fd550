from harebell.base.ports cimport Commit

cdef class GroupCommit(Commit):
    cdef public list dirty
    cdef public bint waiting
    cdef public object flying
    cdef public list finished
    cdef public object cut
    cdef object _files
    cdef object _definitions
    cdef object _redo
    cdef object _handles
