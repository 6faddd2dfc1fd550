"""The doors to a broker side by side: AMQP, HTTP, the control socket and the command line."""
