"""Row 1: errors, limits, the message, and the interfaces that the layers meet at."""
