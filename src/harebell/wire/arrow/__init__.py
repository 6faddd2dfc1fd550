"""Apache Arrow's IPC format: record batches as bytes, without pyarrow.

The columns of a message are few and fixed, so the broker writes the format itself and needs no
library of 170 MB for it. The layout is that of Arrow's columnar format 1.0 (metadata version 5).
"""
