"""Declare the functions of `conversion.pyx` for compiled modules."""

from harebell.base.message cimport Properties

cpdef bytes listed(bytes raw)
cpdef Properties sectioned(bytes raw)
