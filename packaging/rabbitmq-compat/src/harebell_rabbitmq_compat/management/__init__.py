"""`rabbitmqadmin`: the management HTTP API from the command line, with version 1's verbs."""
