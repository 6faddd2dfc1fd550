"""Declare the C functions of `properties.pyx` for other kernels."""

from harebell.base.message cimport Properties

cdef Properties read_properties(const unsigned char* p, Py_ssize_t n)
cdef bint table_fits(const unsigned char* p, Py_ssize_t n, int depth) noexcept
