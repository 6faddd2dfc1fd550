from cpython.ref cimport PyObject

from harebell.kernels.topic_tree cimport Entry, Node

cdef class TopicIndex:
    cdef readonly long long cost
    cdef object _root
    cdef dict _entries
    cdef dict _ids
    cdef list _uses
    cdef list _free
    cdef int* _local
    cdef Py_ssize_t _local_room
    cdef unsigned int* _stamps
    cdef Py_ssize_t _stamps_room
    cdef unsigned int _stamp
    cdef int* _key
    cdef Py_ssize_t _key_room
    cdef unsigned long long* _places
    cdef Py_ssize_t _places_room
    cdef Py_ssize_t _stride
    cdef PyObject** _key_ids
    cdef list _distinct
    cdef Py_ssize_t _segmented

    cpdef add(self, str pattern, Py_ssize_t slot)
    cpdef remove(self, str pattern, Py_ssize_t slot)
    cpdef list match(self, str key)
    cdef int _number(self, list words) except -1
    cdef tuple _parts(self, Entry entry)
    cdef _release(self, list words)
    cdef int _insert(self, Entry entry) except -1
    cdef Node _branch(self, Node node, tuple step, Entry entry, tuple parts)
    cdef Node _divide(self, Node node)
    cdef int _mark(self, Entry entry) except -1
    cdef int _take_out(self, Entry entry) except -1
    cdef int _read_key(self, list words, Py_ssize_t count) except -1
    cdef int _read_places(self, Py_ssize_t count) except -1
    cdef int _visit(self, Node node, Py_ssize_t first, Py_ssize_t end, list matched) except -1
    cdef int _visit_segments(
        self, Node node, Py_ssize_t first, Py_ssize_t end, list matched
    ) except -1
    cdef bint _stands_behind(self, int number, Py_ssize_t first)
    cdef int _look(self, Node node, Py_ssize_t first, Py_ssize_t end, list matched) except -1
    cdef bint _fits(self, int* pattern, Py_ssize_t first, Py_ssize_t end) noexcept
    cdef Py_ssize_t _place(self, int* segment, Py_ssize_t first, Py_ssize_t end) noexcept
