"""The model: the broker without protocol, clock and socket."""
