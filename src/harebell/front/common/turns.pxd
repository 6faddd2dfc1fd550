from harebell.base.work cimport Work

cdef class Account:
    cdef readonly str name
    cdef public long long turn
    cdef public long long spent
    cdef readonly object waiting
    cdef public bint queued
    cdef object __weakref__

cdef class Turns:
    cdef readonly Work work
    cdef public object failures
    cdef public long long units
    cdef public object wake
    cdef public Account current
    cdef public bint crowded
    cdef long long _turn
    cdef bint _waking
    cdef object _accounts
    cdef object _ready
    cdef readonly Account own

    cpdef bint begin(self, Account account) except -1
    cpdef int begin_anyway(self, Account account) except -1
    cpdef long long end(self) except -1
    cdef int _wake(self) except -1
    cpdef int wait(self, Account account, object waiter) except -1
