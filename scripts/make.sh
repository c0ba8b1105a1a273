#!/usr/bin/env bash
# GNU make, installed first where it is missing and that is possible. Usage: scripts/make.sh TARGET...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v make >/dev/null || scripts/apt_install.sh "Quorisk is set up by make" make
exec make "$@"
