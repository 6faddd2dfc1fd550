"""The broker as a value: no protocol, no clock, no socket."""
