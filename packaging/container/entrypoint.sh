#!/bin/sh
# Start the broker as RabbitMQ's image does: on all addresses, with the files in /etc/rabbitmq.
#
# Any other command than rabbitmq-server, such as rabbitmqctl, runs as it is. Variables of Harebell
# that are set, and addresses in the configuration, take precedence over what this script chooses.
set -e

if [ "${1:-}" != rabbitmq-server ]; then
    exec "$@"
fi

export HAREBELL_DATA_DIR="${HAREBELL_DATA_DIR:-/var/lib/rabbitmq/harebell}"
if ! mkdir -p "$HAREBELL_DATA_DIR" 2> /dev/null || [ ! -w "$HAREBELL_DATA_DIR" ]; then
    echo "harebell: user $(id -u) cannot write to the data directory $HAREBELL_DATA_DIR: give the \
volume to that user, or run the container as its owner (--user)" >&2
    exit 1
fi

# Whether a file of the configuration has a line that begins like this.
configured() {
    directory="${HAREBELL_CONFIG:-/etc/rabbitmq}"
    named="${RABBITMQ_CONFIG_FILE:-}"
    grep -Eqs "^[[:space:]]*$1" "$directory" "$directory/rabbitmq.conf" "$directory"/conf.d/*.conf \
        "${named:-/dev/null}" "${named:-/dev/null}.conf"
}

if [ -z "${RABBITMQ_NODE_IP_ADDRESS:-}" ] && ! configured 'listeners\.tcp\.[^=]*=.*:'; then
    export HAREBELL_HOST="${HAREBELL_HOST:-0.0.0.0}"
fi
if ! configured 'management\.(tcp|ssl|listener)\.ip'; then
    export HAREBELL_MANAGEMENT_HOST="${HAREBELL_MANAGEMENT_HOST:-0.0.0.0}"
fi
if ! configured 'prometheus\.(tcp|ssl)\.ip'; then
    export HAREBELL_METRICS_HOST="${HAREBELL_METRICS_HOST:-0.0.0.0}"
fi

# In a container every client comes from the network. A user who names guest, as Testcontainers
# does, wants to log in with it.
if [ "${RABBITMQ_DEFAULT_USER:-}" = guest ] && ! configured 'loopback_users'; then
    export HAREBELL_LOOPBACK_USERS="${HAREBELL_LOOPBACK_USERS:-none}"
fi

exec "$@"
