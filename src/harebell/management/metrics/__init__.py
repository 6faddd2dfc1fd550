"""Metrics for Prometheus, under RabbitMQ's names, and the probes of Kubernetes."""
