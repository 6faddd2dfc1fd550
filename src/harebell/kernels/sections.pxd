from harebell.base.message cimport Properties

cdef struct Borders:
    Py_ssize_t dropped          # where the delivery annotations begin, and
    Py_ssize_t kept             # where they end
    Py_ssize_t body             # where the first section of the body begins
    Py_ssize_t content          # where the content begins of what is the only data section
    int family

cdef Py_ssize_t skip_value(const unsigned char* data, Py_ssize_t at, Py_ssize_t end) except -1
cdef Py_ssize_t count_of(const unsigned char* data, int code, Py_ssize_t start, Py_ssize_t end,
                         Py_ssize_t* at) except -1
cdef int section_at(const unsigned char* data, Py_ssize_t start, Py_ssize_t end,
                    Py_ssize_t* value, Py_ssize_t* after) except -1
cdef int find_borders(const unsigned char* data, Py_ssize_t end, Borders* found) except -1
cdef Py_ssize_t data_at(const unsigned char* data, Py_ssize_t start, Py_ssize_t end) noexcept
cdef bytes joined(const unsigned char* data, Borders* found)
cdef Properties read_properties(bytes raw, int family)
