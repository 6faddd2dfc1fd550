"""Transitional 0-10: sessions, commands with numbers, and their completion, over frames of 0-9."""

from harebell.front.amqp_0_10_transitional.connection import TransitionalConnection

__all__ = ["TransitionalConnection"]
