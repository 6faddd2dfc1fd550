"""The node `/management`: requests and answers over a pair of links, as in RabbitMQ 4.

values      the arguments of declarations and bindings
requests    what is asked for, done by the operations of every other door
pair        the links
"""
