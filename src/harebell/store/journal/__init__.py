"""The journal: the changes of a data directory, as rows of a log in a database."""
