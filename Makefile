# Quorisk: everything starts here. `make` alone lists the targets.
# Needs GNU make (scripts/make.sh installs it) and Python 3.11 or newer; the rest goes into .venv, and what is no Python
# package (Java for Spark, Chromium for tests) where scripts/ find or install it.

PYTHON  ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV    := .venv
BIN     := $(VENV)/bin
UNREAD  := 'site-packages/(.*/tests|debugpy|mypyc?|pip|pkg_resources|setuptools)/'
PIP     := $(BIN)/python -m pip install --no-compile --disable-pip-version-check --quiet
GALLERY := docs/gallery
STAMP   := $(VENV)/.quorisk-installed

# Where Python is told to write no byte code, as in many containers, each process would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

# Looked up when a recipe needs it: Spark reads JAVA_HOME, and a failed lookup stops the recipe.
WITH_JAVA = JAVA_HOME="$$(scripts/ensure_java.sh)" && export JAVA_HOME &&

# The report's tests look at it in a browser, $QUORISK_BROWSER.
WITH_BROWSER = QUORISK_BROWSER="$$(scripts/ensure_chromium.sh)" && export QUORISK_BROWSER &&

# Debian keeps the part of Python that makes environments in a package of its own.
ENSURE_VENV = { $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
    scripts/apt_install.sh "$(PYTHON) cannot make environments" \
    "$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"; }

# No Spark, no JAX, no search of many states: tests of what everything else stands on.
QUICK = tests/analysis/experiment tests/analysis/statistics tests/kernels/engines/test_philox.py tests/test_docs.py \
    tests/sparkjobs/test_spark_conf.py tests/sparkjobs/test_files.py tests/sparkjobs/test_ledger.py tests/analysis/decision/test_verdict.py

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-here test-cluster quick lint gallery counterexamples notebook bench wheel clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## install Quorisk and its tools into .venv, and Java 17 if it is missing
	@$(WITH_JAVA) echo "Ready: $(BIN)/quorisk, with Java in $$JAVA_HOME"

demo: $(STAMP) ## what a Pulsar cluster loses a year: sweep ten designs and draw the report
	@$(WITH_JAVA) $(BIN)/quorisk run configs/pulsar.toml --out results/pulsar --resume
	@echo "The report: $(CURDIR)/results/pulsar/report.html"

# A cluster mostly waits, so its tests run beside the others; lint comes first, while those compile what all need.
# tests/conftest.py says in which order files are shared out.
test: $(STAMP) ## run the tests, lint, and type-check: ten minutes on two cores, and two to set up
	@$(MAKE) --no-print-directory -j2 test-here test-cluster SHORT="--short --hypothesis-profile few"

test-all: $(STAMP) ## the same with all that is exhaustive: before a release
	@$(MAKE) --no-print-directory -j2 test-here test-cluster

test-here: $(STAMP)
	@$(WITH_JAVA) $(WITH_BROWSER) $(BIN)/python -m pytest $(SHORT) -n 2 --dist loadfile --no-loadscope-reorder -m "not cluster"

test-cluster: $(STAMP) lint
	@$(WITH_JAVA) $(BIN)/python -m pytest $(SHORT) -m cluster tests/sparkjobs

quick: lint ## what to run while writing: lint, and the tests that take a moment (ONLY=tests/plots: those instead)
	@$(BIN)/python -m pytest -n 2 -q $(or $(ONLY),$(QUICK))

lint: $(STAMP) ## ruff (rules and format), mypy, and the rules of who imports whom
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --no-cache

gallery: $(STAMP) ## draw the README's figures from real sweeps
	@$(WITH_JAVA) for name in pulsar demo; do \
	    $(BIN)/quorisk run configs/$$name.toml --out results/$$name --resume || exit; done
	@cp results/pulsar/figures/incidents.svg $(GALLERY)/pulsar_incidents.svg
	@for figure in loss_data_loss heat_map_data_loss; do \
	    cp results/demo/figures/$$figure.svg $(GALLERY)/demo_$$figure.svg; done

# With little memory the counterexamples of BookKeeper come from random runs. The README's recovery of defect 2 tells the
# metadata store of a new ensemble at once.
TRACE = $(BIN)/quorisk trace --memory 64MiB --format svg
counterexamples: $(STAMP) ## draw the counterexamples of docs/gallery
	@$(TRACE) configs/defect1.toml --invariant NoDivergenceBetweenClientAndMetaData --out $(GALLERY)/defect1.svg
	@$(TRACE) configs/defect2.toml --invariant OnlyValidFragments --out $(GALLERY)/defect2.svg \
	    --set variant.defer_recovery_ensemble_change=false
	@$(TRACE) configs/defect3.toml --invariant NoDivergenceBetweenClientAndMetaData --out $(GALLERY)/defect3.svg
	@$(TRACE) configs/kip101.toml --invariant StrongIsr --out $(GALLERY)/kip101.svg
	@$(TRACE) configs/last_replica_standing.toml --invariant LeaderCompletenessProperty \
	    --out $(GALLERY)/last_replica_standing.svg
	@$(TRACE) configs/all_copies_lost.toml --invariant NoCommittedRecordLostGlobally --out $(GALLERY)/all_copies_lost.svg
	@$(TRACE) configs/leaked_ledger.toml --invariant CompactedLedgerLeak --out $(GALLERY)/leaked_ledger.svg

notebook: $(STAMP) ## run docs/notebook.ipynb again, and keep what its cells show
	@$(BIN)/python -c 'import nbclient, nbformat; book = nbformat.read("docs/notebook.ipynb", 4); \
	    nbclient.execute(book, cwd=".", timeout=600, record_timing=False); \
	    nbformat.write(book, "docs/notebook.ipynb")'

bench: $(STAMP) ## measure the engines on this machine
	@$(BIN)/quorisk bench

wheel: $(STAMP) ## build the wheel, and try it in an environment away from this repository
	@scripts/try_wheel.sh

clean: ## delete what the other targets make, except .venv
	rm -rf results/pulsar build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

# The stamp is written last, so an interrupted installation is taken up again. pip works with one core, and packs and
# unpacks PySpark for as long as it takes for all else: two work side by side, and a last one adds us and what no pin
# names. All cores compile, and leave out what nobody imports or what has machine code. Four answers then compile what
# heads, chains, searches and clusters of all protocols share, so that nobody's first answer waits for it.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Quorisk needs Python 3.11 or newer. Name one: make setup PYTHON=python3.11" >&2; exit 2; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	    $(ENSURE_VENV) && $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing into $(VENV): a few minutes the first time."
	@$(PIP) --no-deps "$$(grep '^pyspark==' constraints.txt)" & \
	    grep -v '^pyspark==' constraints.txt | $(PIP) --no-deps -r /dev/stdin; rest=$$?; wait $$! && exit $$rest
	@$(PIP) -e '.[dev,exact]' -c constraints.txt
	@$(BIN)/python -m compileall -qq -j 0 -x $(UNREAD) $(VENV)/lib || true
	@$(BIN)/python -m compileall -q -j 0 analysis kernels plots quorisk say sparkjobs
	@echo "Compiling what all protocols share: half a minute."
	@{ $(BIN)/quorisk estimate configs/isr_cluster.toml & $(BIN)/quorisk estimate configs/limbo.toml; \
	    $(BIN)/quorisk exact configs/leaked_ledger.toml; $(BIN)/quorisk explore configs/leaked_ledger.toml; wait; \
	} >/dev/null 2>&1 || true
	@touch $@
