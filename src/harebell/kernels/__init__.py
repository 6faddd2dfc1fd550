"""Byte work: each module twice, as `.pyx` compiled to C and as `.py` in pure Python that says what it does.

Both have one module name; which of them an import finds is the choice of `harebell.base.impl`.
"""
