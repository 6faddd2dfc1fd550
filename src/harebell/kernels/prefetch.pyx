"""Prefetch the messages of a backlog into the CPU cache, in C; see prefetch.py."""

from cpython.object cimport PyObject

from harebell.base.message cimport Message

cdef extern from "Python.h":
    # PyList_GET_ITEM gives a borrowed reference: no reference count changes, and none needs a
    # cache line.
    PyObject* item "PyList_GET_ITEM"(object of, Py_ssize_t index)
    PyObject* NONE "Py_None"

cdef extern from *:
    void __builtin_prefetch(const void* place) noexcept

# A message is prefetched in two steps. Its object comes first, because the pointer to its body is
# in it. When the loop is nearer, the object is in the cache and its body can be prefetched.
cdef enum:
    OBJECT_AHEAD = 8            # messages ahead of `index` whose object is prefetched
    BODY_AHEAD = 4              # messages ahead of `index` whose body is prefetched
    CACHE_LINE = 64             # bytes
    BODY_LINES = 3              # cache lines of a body: the header of `bytes` and a small body


cpdef int prefetch_after(list messages, Py_ssize_t index) except -1:
    """Prefetch the messages that follow an index; see prefetch.py."""
    cdef PyObject* message
    cdef const char* body
    cdef int line
    if index < 0 or index + OBJECT_AHEAD >= len(messages):
        return 0
    message = item(messages, index + OBJECT_AHEAD)
    if message != NONE:
        # The fields of a Message fill two cache lines.
        __builtin_prefetch(message)
        __builtin_prefetch(<const char*>message + CACHE_LINE)
    message = item(messages, index + BODY_AHEAD)
    if message != NONE:
        body = <const char*><PyObject*>(<Message>message).body
        for line in range(BODY_LINES):
            __builtin_prefetch(body + line * CACHE_LINE)
    return 0
