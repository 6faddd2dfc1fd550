"""Named publishers and staged batches: publishes that take effect once, or together."""
