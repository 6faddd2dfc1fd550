"""What other kernels see of `properties.pyx`."""

from harebell.base.message cimport Properties

cdef Properties read_properties(const unsigned char* p, Py_ssize_t n)
cdef bint table_fits(const unsigned char* p, Py_ssize_t n, int depth) noexcept
