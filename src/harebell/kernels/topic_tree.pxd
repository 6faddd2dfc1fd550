cdef enum:
    ANY = 0
    UNKNOWN = -1
    BUCKET = 128
    BEHIND = 1024
    LEFT = 0
    RIGHT = 1
    FREE = 2
    SIZE = 0
    SLOT = 1
    MORE = 2
    NEED = 3
    PREFIX = 4
    SUFFIX = 5
    SEGMENTS = 6
    WORDS = 7

cdef void* grown(void* old, size_t octets) except NULL

cdef class Entry:
    cdef str name
    cdef dict more
    cdef int* packed
    cdef int slot
    cdef int uses

    cdef int add(self, int slot) except -1
    cdef int drop(self, int slot) except -1

cdef class Node:
    cdef int kind
    cdef int depth
    cdef Py_ssize_t held
    cdef bint divided
    cdef list bucket
    cdef dict children
    cdef dict segments
    cdef Node one
    cdef Node many
    cdef int* packed
    cdef Py_ssize_t packed_size
    cdef Py_ssize_t packed_room
    cdef int* segment

    cdef tuple step(self, tuple parts)
    cdef object child(self, tuple step)
    cdef Node grow(self, tuple step)
    cdef int cut(self, tuple step) except -1
    cdef int put(self, Entry entry, tuple parts) except -1
    cdef int take(self, Entry entry) except -1
    cdef int empty(self) except -1
    cdef int mark(self, Entry entry) except -1
    cdef int* packed_at(self, Py_ssize_t index) noexcept

cdef Py_ssize_t packed_size(tuple parts) except -1
cdef Py_ssize_t pack_one(int* into, Entry entry, tuple parts, int kind, int depth) except -1
