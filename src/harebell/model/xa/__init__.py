"""Distributed transactions (X/Open XA): branches, their states, and their stored form."""
