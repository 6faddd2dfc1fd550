"""The log of the broker: formats, outputs, and the thread that writes them."""
