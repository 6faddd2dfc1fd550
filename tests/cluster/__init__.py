"""Tests of several brokers that work together."""
