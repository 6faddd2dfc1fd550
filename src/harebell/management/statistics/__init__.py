"""Samples of the counters: rates, and histories of bounded length."""
