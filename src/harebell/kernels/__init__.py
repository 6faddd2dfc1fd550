"""Byte work: each module twice, compiled from `.pyx` and in pure Python as its own description.

Both have one module name; which of them an import finds is the choice of `harebell.base.impl`.
"""
