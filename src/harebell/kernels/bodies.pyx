"""Join the pieces of a body as they arrive, in C; see bodies.py."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.string cimport memcpy


cdef extern from "Python.h":
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char* octets, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject** octets, Py_ssize_t size) except -1
    char* raw_string "PyBytes_AS_STRING"(PyObject* octets)

cdef enum:
    FIRST = 16384               # smallest block, in bytes
    AHEAD_FROM = 1048576        # bytes that must have arrived before room is made for all
    # Largest room for bytes that have not arrived. Unwritten pages take no memory, and
    # a peer that announces a large body and sends nothing costs nothing.
    AHEAD_MAX = 67108864


cdef class GatheredBody:
    """A body that arrives in pieces; see bodies.py."""

    cdef bytes _only
    cdef PyObject* _data
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _expected
    cdef readonly Py_ssize_t size

    def __cinit__(self, Py_ssize_t expected=0):
        self._expected = min(expected, <Py_ssize_t>AHEAD_MAX)
        self._data = NULL
        self._capacity = 0
        self.size = 0

    def __dealloc__(self):
        Py_XDECREF(self._data)

    cpdef int add(self, bytes piece) except -1:
        """Append a piece."""
        cdef Py_ssize_t more = PyBytes_GET_SIZE(piece)
        cdef Py_ssize_t wanted = self.size + more
        cdef bytes only = self._only
        if self.size == 0:
            # It may be the whole body: keep a reference, copy nothing.
            self._only = piece
            self.size = more
            return 0
        if only is not None:
            # A second piece: from here on both are in one block.
            self._only = None
            self.size = 0
            self._grow(wanted)
            self.size = PyBytes_GET_SIZE(only)
            memcpy(raw_string(self._data), PyBytes_AS_STRING(only), self.size)
        if wanted > self._capacity:
            self._grow(wanted)
        if more:
            memcpy(raw_string(self._data) + self.size, PyBytes_AS_STRING(piece), more)
        self.size = wanted
        return 0

    cdef int _grow(self, Py_ssize_t wanted) except -1:
        """Make room. The system moves large blocks page by page (mremap), without a copy."""
        cdef Py_ssize_t capacity = max(2 * wanted, <Py_ssize_t>FIRST)
        # The announced size is used if it is less than doubling, or once so much has arrived that
        # the peer can be believed: then nothing is copied or resized any more.
        if self._expected >= wanted and (capacity > self._expected or wanted >= AHEAD_FROM):
            capacity = self._expected
        if self._data == NULL:
            self._data = new_bytes(NULL, capacity)
        else:
            try:
                _PyBytes_Resize(&self._data, capacity)
            except MemoryError:
                # _PyBytes_Resize frees the block when it fails: the pieces are lost.
                self._capacity = self.size = 0
                raise
        self._capacity = capacity
        return 0

    cpdef bint shrink(self, Py_ssize_t octets) except -1:
        """Free the last bytes of a dropped body; return False if none are left."""
        self.size = max(self.size - octets, <Py_ssize_t>0)
        if self.size == 0:
            self._only = None
            Py_XDECREF(self._data)
            self._data = NULL
            self._capacity = 0
        # realloc gives the pages back to the system at once.
        elif self._data != NULL:
            _PyBytes_Resize(&self._data, self.size)
            self._capacity = self.size
        return self.size > 0

    cpdef bytes take(self):
        """Return the whole body and forget it."""
        cdef bytes octets = self._only
        if octets is not None:
            self._only = None
            self.size = 0
            return octets
        if self._data == NULL:
            return b""
        if self.size < self._capacity:
            _PyBytes_Resize(&self._data, self.size)
        octets = <bytes><object>self._data
        Py_XDECREF(self._data)
        self._data = NULL
        self._capacity = self.size = 0
        return octets
