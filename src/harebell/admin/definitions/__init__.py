"""Export and import definitions in RabbitMQ's JSON format.

`entries` has a class for each kind of entry, `exporter` writes a document, `importer` reads one.
"""
