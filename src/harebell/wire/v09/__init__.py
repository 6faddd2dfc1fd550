"""The 0-9-1 family on the wire: tables of methods, typed methods, field tables, properties, states."""
