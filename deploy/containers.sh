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
# content: files have the date of the newest package's release.
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
