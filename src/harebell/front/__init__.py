"""AMQP's methods turned into model calls, and the model's outcomes into AMQP's replies."""
