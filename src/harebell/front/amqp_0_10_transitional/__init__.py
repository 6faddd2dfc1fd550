"""Transitional 0-10: sessions, commands with numbers, and their completion, over frames of 0-9."""
