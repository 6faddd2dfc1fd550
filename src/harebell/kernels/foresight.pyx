"""Messages of a backlog, brought near before they are wanted, in C.

foresight.py beside this file says why.
"""

from cpython.object cimport PyObject

from harebell.base.message cimport Message

cdef extern from "Python.h":
    PyObject* item "PyList_GET_ITEM"(object of, Py_ssize_t index)
    PyObject* NONE "Py_None"

cdef extern from *:
    void __builtin_prefetch(const void* place) noexcept

cdef enum:
    FAR = 8                     # the object itself; it says where its body is
    NEAR = 4                    # its body
    LINE = 64                   # octets that come at once
    LINES = 3


cpdef int foresee(list messages, Py_ssize_t index) except -1:
    """The messages that follow an index are likely to be wanted next; see foresight.py."""
    cdef PyObject* there
    cdef const char* body
    cdef int line
    if index < 0 or index + FAR >= len(messages):
        return 0
    there = item(messages, index + FAR)
    if there != NONE:
        __builtin_prefetch(there)
        __builtin_prefetch(<const char*>there + LINE)
    there = item(messages, index + NEAR)
    if there != NONE:
        body = <const char*><PyObject*>(<Message>there).body
        for line in range(LINES):
            __builtin_prefetch(body + line * LINE)
    return 0
