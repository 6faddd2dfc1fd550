"""RabbitMQ's command-line tools for a Harebell broker."""
