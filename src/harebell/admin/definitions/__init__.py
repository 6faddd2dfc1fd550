"""Definitions: what is declared in a broker, as RabbitMQ's JSON document.

`entries` has a class for each kind of entry, `exporter` writes a document, `importer` reads one.
"""
