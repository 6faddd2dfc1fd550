"""Byte work compiled to C. Every kernel has a pure Python twin that says what it does."""
