"""The metrics of one kind of object per module: a table of metrics, and rows of values."""
