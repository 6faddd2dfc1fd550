"""In place of `rabbitmqctl` and `make`: asks the process that has the broker; see steering.py."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as asked:
    asked.connect(os.environ["SUITES_STEERING"])
    asked.sendall(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]).encode() + b"\n")
    code, output, errors = json.loads(asked.makefile().read())
sys.stdout.write(output)
sys.stderr.write(errors)
sys.exit(code)
