"""Read a queue or stream by position, without consuming it."""
