#!/usr/bin/env bash
# Make this clone ready for a purpose: tools/setup.sh run|demo|site|test
#
# Only finds a Python to go on with; tools/setup.py does the rest. PYTHON=... chooses another one.
set -euo pipefail
cd "$(dirname "$0")/.."

for python in ${PYTHON:-} python3.11 python3; do
    if command -v "$python" > /dev/null \
        && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        exec "$python" tools/setup.py "$@"
    fi
done

echo "harebell needs Python 3.11 or newer, and there is none on PATH. On Debian:" >&2
echo "  apt-get update && apt-get install -y python3 python3-venv python3-dev" >&2
exit 1
