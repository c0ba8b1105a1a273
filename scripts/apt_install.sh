#!/usr/bin/env bash
# Installs Debian packages where that takes no password; otherwise says what is missing, and exits 2.
# Usage: apt_install.sh REASON PACKAGE...     (QUORISK_NO_INSTALL=1: never install, only say)
set -euo pipefail

reason=$1
shift

say_and_stop() {
    echo "$reason. $1" >&2
    exit 2
}

command -v apt-get >/dev/null || say_and_stop "Install what your system calls $*, then try again."

if [[ -n ${QUORISK_NO_INSTALL:-} ]]; then
    run=()
elif [[ $EUID -eq 0 ]]; then
    run=(env)
elif sudo -n true 2>/dev/null; then
    run=(sudo -n env)
else
    run=()
fi
[[ ${#run[@]} -gt 0 ]] || say_and_stop "Run this, then try again: sudo apt-get install $*"

echo "$reason; installing $*." >&2
run+=(DEBIAN_FRONTEND=noninteractive apt-get -qq)
# Lists that cannot be refreshed may still do; standard output belongs to our caller.
"${run[@]}" update >&2 || true
"${run[@]}" install --yes --no-install-recommends "$@" >&2 ||
    say_and_stop "Installing failed; run this by hand, then try again: sudo apt-get install $*"
