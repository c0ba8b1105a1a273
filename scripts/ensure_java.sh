#!/usr/bin/env bash
# Prints the JAVA_HOME of a Java that Spark runs on (17 or newer), installing one where that is possible.
# Looks at $JAVA_HOME, then PATH, then the usual folders (QUORISK_JVM_DIRS: others, separated by spaces).
set -euo pipefail

oldest=17

# The major version: 1.8.0_392 -> 8, 17.0.15 -> 17, 21 -> 21, 25-ea -> 25.
major() {
    local version=${1#1.}
    echo "${version%%[!0-9]*}"
}

# Prints the home of the given java if it is new enough. Java itself is asked, since PATH may hold a
# chain of links or a wrapper.
home_of() {
    local properties version home
    properties=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(sed -n 's/^ *java\.version = //p' <<<"$properties")
    home=$(sed -n 's/^ *java\.home = //p' <<<"$properties")
    version=$(major "$version")
    [[ ${version:-0} -ge $oldest && -n $home ]] && echo "$home"
}

find_java() {
    local java candidates=()
    [[ -z ${JAVA_HOME:-} ]] || candidates+=("$JAVA_HOME/bin/java")
    candidates+=("$(command -v java || true)")
    # shellcheck disable=SC2206  # the patterns are to be expanded
    local dirs=(${QUORISK_JVM_DIRS:-/usr/lib/jvm/* /Library/Java/JavaVirtualMachines/*/Contents/Home})
    candidates+=("${dirs[@]/%//bin/java}")
    for java in "${candidates[@]}"; do
        [[ -x $java ]] && home_of "$java" && return
    done
    return 1
}

main() {
    find_java && return
    # Every Debian or Ubuntu with Python 3.11 has 17 or newer as its default.
    "$(dirname "${BASH_SOURCE[0]}")/apt_install.sh" "Spark needs Java $oldest or newer" default-jre-headless
    find_java || {
        echo "Java $oldest or newer is still not found; install one and point JAVA_HOME at it." >&2
        exit 2
    }
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main
