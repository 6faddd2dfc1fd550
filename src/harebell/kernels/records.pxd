from cpython.object cimport PyObject
from harebell.base.message cimport Message
from harebell.kernels.batches cimport BatchBuilder
from harebell.kernels.rows cimport Rows
from harebell.kernels.settled_bitmap cimport SettledBitmap

cdef class RecordBuffer:
    cdef PyObject* _bytes
    cdef unsigned char* _base
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _last
    cdef readonly long long start
    cdef readonly Py_ssize_t size
    cdef unsigned int _seed

    cdef unsigned char* _room(self, Py_ssize_t more) except NULL
    cpdef int raw(self, bytes data) except -1
    cpdef long long message(self, long long position, long long time, Message message,
                            int keep) except -1
    cpdef Py_ssize_t rows(self, long long position, long long time, Rows rows, Py_ssize_t first,
                          Py_ssize_t end, int keep, long long limit,
                          SettledBitmap positions) except -1
    cdef bytes _pattern(self, long long position, long long time, Message message, int keep,
                        Py_ssize_t* fixed)
    cpdef long long note(self, int kind, long long position, long long time,
                         bytes payload) except -1
    cpdef Message read(self, long long offset)
    cpdef bint append_to(self, long long offset, long long position, BatchBuilder into) except -1
    cpdef object view(self)
    cpdef int empty_at(self, long long start) except -1
    cpdef bytes take(self)
    cdef int _release(self) except -1

cpdef Py_ssize_t message_size(Message message) except -1
cpdef Py_ssize_t record_size(bytes data, Py_ssize_t at) except -1
cpdef bint good(bytes data, Py_ssize_t at, unsigned int seed) except -1
cpdef Py_ssize_t body_start(bytes data, Py_ssize_t at) except -1
cpdef Message parse(bytes data, Py_ssize_t at, long long seed=*)
cpdef bint append_to(bytes data, Py_ssize_t at, long long position, long long seed,
                BatchBuilder into) except -1
