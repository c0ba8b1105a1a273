#!/usr/bin/env bash
# Builds the wheel and tries it far from this repository: in an environment that lacks the sources, in a folder that has
# other packages of our folders' names, it runs an experiment on local Spark, draws the report, and answers a script.
# The libraries are those of the environment that Quorisk is developed in. Usage: scripts/try_wheel.sh [PYTHON]
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${1:-$repository/.venv/bin/python}
JAVA_HOME=$("$repository/scripts/ensure_java.sh")
export JAVA_HOME
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT

git -C "$repository" archive HEAD | tar -x --one-top-level="$away/sources"
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$away" "$away/sources"
rm -rf "$away/sources"
"$python" -m venv "$away/venv"
"$away/venv/bin/python" -m pip install --quiet --no-deps "$away"/quorisk-*.whl
libraries=$("$python" -c 'import numba; print(__import__("pathlib").Path(numba.__file__).parent.parent)')
echo "$libraries" > "$(echo "$away"/venv/lib/python3*/site-packages)/libraries.pth"

mkdir "$away/work"
cd "$away/work"
for name in kernels analysis sparkjobs plots; do
    mkdir $name
    echo "raise ImportError('somebody else has a package named $name')" > $name/__init__.py
done
cp "$repository/configs/demo.toml" .
export PYTHONPATH=$PWD
"$away/venv/bin/quorisk" run demo.toml --set run.runs=2000 --out results
"$away/venv/bin/python" -m quorisk estimate demo.toml --set run.runs=2000 --set write_quorum=3 --set ack_quorum=2 \
    --set faults.message_loss=0.1 --set variant.fence_recovery_reads=true > estimate.txt
test -s results/report.html
"$away/venv/bin/python" - <<'SCRIPT'
import quorisk

assert "venv" in quorisk.__file__, quorisk.__file__
from quorisk.analysis.results.sweeps import load

print(f"{len(load('results').frame)} rows, read by {quorisk.__file__}")
SCRIPT
echo "The wheel works."
