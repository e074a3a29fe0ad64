# Shared functions of the scripts that use containers: podman and buildah as root. Sourced after lib.sh, not run.
# shellcheck shell=bash

export CONTAINERS_CONF="$PWD/deploy/containers.conf"
# shellcheck disable=SC2034 # used by scripts that source this
image=localhost/fieldpost

# Installs podman and buildah, with their network programs.
need_containers() {
    [ "$(id -u)" = 0 ] || fail "containers with networks need root"
    need_packages podman buildah runc netavark aardvark-dns iptables iproute2 uidmap ca-certificates "$@"
}

image_exists() { podman image exists "$1"; }

# Prints the Debian release of the Containerfile's last stage.
debian_release() { sed -n 's|^FROM docker.io/library/debian:\(.*\)-slim$|\1|p' deploy/Containerfile; }

# Creates the image `debian:RELEASE-slim` from Debian's packages unless it exists. The same packages give the same
# content: the dates of files are fixed.
need_debian_image() {
    local name archive
    name=docker.io/library/debian:$(debian_release)-slim
    if image_exists "$name"; then return; fi
    need_packages mmdebstrap
    log "creating $name from Debian's packages"
    archive=$(mktemp --suffix=.tar)
    # Excludes the same files as the slim image. Like it, it keeps no downloaded packages.
    quietly "mmdebstrap failed" env SOURCE_DATE_EPOCH=0 mmdebstrap --variant=minbase --include=ca-certificates \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --customize-hook='echo "Binary::apt::APT::Keep-Downloaded-Packages \"false\";
            DPkg::Post-Invoke { \"rm -f /var/cache/apt/*.bin /var/cache/apt/archives/*.deb\"; };" \
            >"$1/etc/apt/apt.conf.d/docker-clean"' "$(debian_release)" "$archive"
    quietly "the image cannot be imported" podman import --change 'CMD ["bash"]' "$archive" "$name"
    rm -f "$archive"
}

# Creates the image of the Containerfile's first stage from Debian's packages and this machine's Swift unless it exists.
need_swift_image() {
    local name swift container
    name=$(sed -n 's|^FROM \(.*\) AS build$|\1|p' deploy/Containerfile)
    if image_exists "$name"; then return; fi
    need_swift
    need_debian_image
    log "creating $name from Debian's packages and this machine's Swift"
    swift=$(dirname "$(dirname "$(realpath "$(command -v swift)")")")
    container=$(buildah from "docker.io/library/debian:$(debian_release)-slim")
    # The packages of Swift's image for Debian.
    quietly "Swift's packages cannot be installed" buildah run --isolation chroot "$container" bash -c 'apt-get update -q &&
        apt-get install -q -y --no-install-recommends binutils git gnupg2 libc6-dev libcurl4-openssl-dev libedit2 \
            libgcc-12-dev libncurses-dev libpython3-dev libsqlite3-0 libstdc++-12-dev libxml2-dev libz3-dev pkg-config \
            tzdata unzip zlib1g-dev && rm -rf /var/lib/apt/lists/*'
    quietly "Swift cannot be copied" buildah copy "$container" "$swift" /usr
    quietly "the image cannot be created" buildah commit --rm "$container" "$name"
}

# Prints git's `insteadOf` settings of local folders as options of buildah: a build then reads repositories where this
# machine does. $1: file for the settings
git_mirrors() {
    local key value folder
    git config --get-regexp '^url\./.*\.insteadof$' | while read -r key value; do
        git config --file "$1" --add "$key" "$value"
        folder=${key#url.}
        echo "--volume=$(realpath "${folder%.insteadof}"):${folder%.insteadof}:ro"
    done | sort -u
    [ ! -s "$1" ] || echo "--volume=$1:/etc/gitconfig:ro"
}

# --- An installation of deploy/compose.yaml with deploy/sandbox ------------------------------------------------------

# The folder of the installation's files, and its name. Set by scripts that source this.
work='' project=''
# This image has the workbench too.
sandbox=localhost/fieldpost-sandbox:local
emulators=(identity sap compass)

# Installs podman-compose, and determines the services.
need_compose() {
    need_packages python3 python3-venv openssl
    need_python_programs podman-compose podman-compose==1.6.0
    podman_compose=$PWD/.build/podman-compose/bin/podman-compose
    . deploy/trial.sh
    mapfile -t names < <(services)
}

# Requires that no other run uses the project, and no other installation the network's addresses. Call it before a trap
# that removes the installation.
claim_project() {
    local file=/run/$project.pid id network subnet used
    id=$(cat "$file" 2>/dev/null || true)
    if [ -n "$id" ] && [ "$id" != $$ ] && grep -q "$(basename "$0")" "/proc/$id/cmdline" 2>/dev/null; then
        fail "process $id already runs this script"
    fi
    echo $$ >"$file"
    subnet=$(sed -n 's/.*subnet: \([0-9./]*\).*/\1/p' deploy/sandbox/compose.yaml)
    for network in $(podman network ls --format '{{.Name}}'); do
        used=$(podman network inspect --format '{{range .Subnets}}{{.Subnet}} {{end}}' "$network" 2>/dev/null || true)
        if [ "$network" != "${project}_default" ] && [[ " $used" == *" $subnet "* ]]; then
            fail "the network $network has the addresses $subnet: end its installation, and remove the network"
        fi
    done
}

# Copies the files that an operator copies, and creates secrets unless they exist. $1: the image of the services
prepare_installation() {
    # Variables of the caller would override those of .env.
    unset "${!FIELDPOST_@}"
    mkdir -p "$work"
    chmod 700 "$work"
    cp -r deploy/compose.yaml deploy/backup deploy/caddy deploy/prometheus deploy/grafana deploy/sandbox "$work"
    if [ ! -e "$work/.env" ]; then
        (
            umask 077
            printf '%s\n' "POSTGRES_PASSWORD=$(openssl rand -hex 16)" "FIELDPOST_SECRET_KEYS=$(openssl rand -base64 32)" \
                "GRAFANA_PASSWORD=$(openssl rand -hex 16)" "FIELDPOST_IMAGE=$1" \
                FIELDPOST_ONBOARDING_APP_FOLDER=/usr/share/fieldpost/app FIELDPOST_CORS_ORIGINS=http://127.0.0.1:18083 >"$work/.env"
            echo SANDBOX_SAP_PASSWORD=sandbox >"$work/back-ends.env"
        )
    fi
}

# Sets the image of services that are started from now on.
use_image() { sed -i "s|^FIELDPOST_IMAGE=.*|FIELDPOST_IMAGE=$1|" "$work/.env"; }

# Runs podman-compose, with its output in $work/compose.log. `run` needs the profile.
files=(-f compose.yaml -f sandbox/compose.yaml)
compose() {
    (cd "$work" && "$podman_compose" --in-pod=false --profile tools -p "$project" "${files[@]}" "$@") \
        >>"$work/compose.log" 2>&1 || fail_with_logs "podman-compose $* failed"
}

# Prints the ids of the installation's containers, or of one of its services.
ids() {
    podman ps --all --quiet --filter "label=com.docker.compose.project=$project" \
        ${1:+--filter "label=com.docker.compose.service=$1"}
}

# Prints the ends of the logs and one line with the reason, and exits.
fail_with_logs() {
    local id
    sed '/systemd connection/d' "$work/compose.log" | tail -n 20 >&2
    for id in $(ids); do
        podman logs --tail 5 "$id" 2>&1 | sed "s|^|$(podman inspect --format '{{.Name}}' "$id"): |" >&2
    done
    fail "$1"
}

# Waits until every container of the services passes the health check of its file; each service must have one. podman 4
# has no such wait, and runs checks only with systemd.
wait_healthy() {
    local name id containers deadline=$((SECONDS + 120))
    for name in "$@"; do
        containers=$(ids "$name")
        [ -n "$containers" ] || fail_with_logs "$name has no container"
        for id in $containers; do
            until podman healthcheck run "$id" >/dev/null 2>&1; do
                [ "$SECONDS" -lt "$deadline" ] || fail_with_logs "the health check of $name failed"
                sleep 0.2
            done
        done
    done
}

# Waits until containers have ended with status 0.
wait_done() {
    local name
    for name in "$@"; do [ "$(podman wait "$(ids "$name")")" = 0 ] || fail_with_logs "$name failed"; done
}

# Starts everything in the order of its dependencies.
start_installation() {
    log "starting PostgreSQL, the broker and the emulators"
    compose up --detach --no-deps postgres kafka "${emulators[@]}"
    wait_healthy postgres kafka "${emulators[@]}"
    log "migrating the schema, creating topics"
    compose up --detach --no-deps --force-recreate migration topics
    wait_done migration topics
    log "starting ${#names[@]} services, Prometheus, Alertmanager and the backup"
    compose up --detach --no-deps "${names[@]}" prometheus alertmanager backup
    wait_healthy "${names[@]}" prometheus alertmanager backup
    log "all services are ready"
}

# Runs the workbench in the installation's network. $1: container; the other arguments: the workbench's
workbench() {
    local name=$project-$1
    shift
    # Process lists show arguments, but not the environment.
    (
        . "$work/.env"
        export FIELDPOST_SECRET_KEYS FIELDPOST_DATABASE_URL=postgresql://fieldpost:$POSTGRES_PASSWORD@postgres/fieldpost
        podman run --rm --interactive --no-healthcheck --name "$name" --network "${project}_default" \
            -e FIELDPOST_DATABASE_URL -e FIELDPOST_SECRET_KEYS -e SANDBOX_CLIENT_SECRET=sandbox-secret \
            -e GATEWAY_URL=http://realm-gateway:18080 -e IDENTITY_URL=http://10.136.36.10:8081 \
            -e SAP_URL=http://sap:8200 "$sandbox" workbench "$@"
    )
}

# Removes the installation with its data.
remove_installation() {
    local id
    for id in $(ids) $(podman ps --all --quiet --filter "name=^$project-"); do
        podman rm --force --volumes --time 5 "$id"
    done >/dev/null 2>&1
    podman volume ls --quiet | grep "^${project}_" | xargs -r podman volume rm --force
    podman network rm --force "${project}_default"
} >/dev/null 2>&1
