#!/usr/bin/env bash
# Prints the path of a Chromium or Chrome, with which the tests look at the report, installing one where that is possible.
# Looks at $QUORISK_BROWSER, then PATH under the usual names.
set -euo pipefail

names=(chromium chromium-browser google-chrome-stable google-chrome chrome)

# Ubuntu's chromium-browser may be a stub that only tells of another package: the browser itself is asked.
works() {
    [[ -x $1 ]] && "$1" --version >/dev/null 2>&1
}

find_browser() {
    local name browser
    for name in ${QUORISK_BROWSER:+"$QUORISK_BROWSER"} "${names[@]}"; do
        browser=$(command -v "$name" || true)
        works "${browser:-/nowhere}" && echo "$browser" && return
    done
    return 1
}

main() {
    find_browser && return
    "$(dirname "${BASH_SOURCE[0]}")/apt_install.sh" "The report's tests need Chromium" chromium
    find_browser || {
        echo "Chromium is still not found; install it or Chrome and point QUORISK_BROWSER at it." >&2
        exit 2
    }
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main
