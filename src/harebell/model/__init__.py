"""The broker as a value: exchanges, queues, bindings, consumers. No protocol, no clock, no socket."""
