"""Findings: what in a running broker needs somebody, why, since when, and what repairs it.

watch.py     looks at the broker every few seconds, and keeps what was found
trails.py    what a queue and the node have done since the last look
rule.py      what a rule is
rules/       one rule per file
"""
