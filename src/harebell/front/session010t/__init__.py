"""Transitional 0-10: sessions, commands with numbers, and their completion, over frames of 0-9."""

from harebell.front.session010t.connection import TransitionalConnection

__all__ = ["TransitionalConnection"]
