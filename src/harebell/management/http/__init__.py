"""The HTTP API of a broker: RabbitMQ's management API, served in the broker's event loop."""
