"""Declare conditions for classes that look at many messages."""

from harebell.base.message cimport Message

cdef struct Value:
    int kind
    long long integer
    double real
    const char* text
    Py_ssize_t size
    void* thing

cdef struct Node:
    int op
    int left
    int right
    Value constant

cdef class Condition:
    cdef Node* _nodes
    cdef int _count
    cdef int _root
    cdef int* _children
    cdef int _child_count
    cdef bint _plain
    # What the nodes refer to: constants, functions, patterns.
    cdef list _objects
    # Names of headers in UTF-8, and what the message at hand has for them.
    cdef list _names
    cdef Value* _headers
    cdef Value* _properties
    cdef bint _has_headers
    cdef bint _has_properties
    cdef bint _slow_headers
    cdef bint _slow_properties
    cdef Message _message
    cdef object _looker
    cdef object _decoded
    # Values of the decoded message that the evaluation refers to.
    cdef list _alive

    cpdef int test(self, Message message, object looker) except -2
    cpdef object value(self, Message message, object looker)
    cdef int _truth(self, int index) except -2
    cdef int _value(self, int index, Value* out) except -1
    cdef int _compare(self, Node* node) except -2
    cdef int _is_in(self, Node* node) except -2
    cdef int _is_between(self, Node* node) except -2
    cdef int _compared(self, int op, Value* first, Value* second, object mixed) except -2
    cdef int _arithmetic(self, Node* node, Value* out) except -1
    cdef int _match(self, Node* node) except -2
    cdef int _header(self, int slot, Value* out) except -1
    cdef int _property(self, int slot, Value* out) except -1
    cdef int _take(self, object value, Value* out) except -1
    cdef object _whole(self)
    cdef int _find_headers(self) except -1
    cdef int _find_properties(self) except -1
    cdef int _note_fields(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef bint _note_list(self, const unsigned char* p, Py_ssize_t n, bint of_header) except -1
    cdef int _note_table(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int _note_sections(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int _note_pairs(self, const unsigned char* p, Py_ssize_t n, long long count) except -1
    cdef int _note_map(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int _add(self, int op, int left, int right) except -1
    cdef int _compile(self, tuple node) except -1
