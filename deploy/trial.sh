# Shared functions of deploy/package-trial, which calls them in a separate network namespace, and of containers.sh.
# Sourced, not run.
# shellcheck shell=bash

# Starts PostgreSQL and the Kafka emulator at their default ports. They end with the namespace's processes.
start_database_and_broker() {
    local run=$1 postgres=$2 sandbox=$3 data=$1/postgres
    ip link set lo up
    install -d -o postgres -g postgres "$data"
    quietly "initdb failed" runuser -u postgres -- "$postgres/initdb" --auth=trust --username=fieldpost -D "$data"
    quietly "PostgreSQL does not start" runuser -u postgres -- "$postgres/pg_ctl" -w -D "$data" -l "$data/log" \
        -o "-c unix_socket_directories= -c listen_addresses=127.0.0.1 -c fsync=off" start
    quietly "the database cannot be created" "$postgres/createdb" --host=127.0.0.1 --username=fieldpost fieldpost
    "$sandbox" broker --port 9092 >"$run/broker.log" 2>&1 &
}

# The services of the catalogue, and the port of each for health checks.
services() { sed -n 's/^Wants=fieldpost@\(.*\)\.service$/\1/p' deploy/systemd/fieldpost.target; }
admin_port() { sed -n 's/^FIELDPOST_ADMIN_PORT=//p' "deploy/systemd/$1.env"; }
is_ready() { curl -fsS -o /dev/null "http://127.0.0.1:$1/health/ready" 2>/dev/null; }
