"""The benchmark: what a broker costs per message, measured from outside.

`python -m bench` runs scenarios against brokers in processes of their own;
docs/reference/benchmarks.md says what is measured and how to read it.
"""
