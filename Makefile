# make quickstart   a real study on this machine: from nothing to verdicts
# make test         everything that must hold, on a bare machine, in minutes
# make test-long    the tests that take longer
# make test-lowest  make test with the oldest releases that pyproject.toml accepts
# make lint         style and types; known vulnerabilities are shown
# make audit        known vulnerabilities of what is pinned; fails when there are any
# make docs       docs/ as a site with a search field, in site/
# make gpu          what a card here does with it, in 9 minutes (benchmarks/gpu.py)
# make bench        what is fast, against whom (results in benchmarks/results), which goals are reached, and which
#                   results are older than the code

# Tests start many processes, and each would read our modules as text where somebody told Python to keep no bytecode.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PINS   := constraints.txt
LEDGER ?= ledger
comma  := ,
GPU    := $(if $(filter gpu,$(SEMRAY_TORCH)),yes,$(shell command -v nvidia-smi 2>/dev/null))
PARTS  := .[train,offline,dev,docs,s3$(if $(GPU),$(comma)gpu)]
SUDO_APT := $(if $(filter 0,$(shell id -u)),$(shell command -v apt-get 2>/dev/null))
# $(call apt,PACKAGES): Debian packages where this is root on a Debian; elsewhere nothing, and the tests say what they skip
apt = $(if $(SUDO_APT),dpkg -s $(1) >/dev/null 2>&1 || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) >/dev/null; },true)

.PHONY: help quickstart environment wordnet test test-long test-lowest lint audit docs bench gpu clean

help:
	@sed -n '1,/^$$/s/^# //p' Makefile

environment: $(READY)

# By uv, in a third of pip's time; by pip where uv does not find the index, which pip may be told of in its own settings.
$(READY): pyproject.toml $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "semray needs Python 3.11 or newer; make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { $(call apt,python3-venv); $(PYTHON) -m venv $(VENV); }
	@$(BIN)/pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)  # an earlier attempt was killed half-way
	@echo "installing the environment into $(VENV) (a few minutes the first time)"
	@$(BIN)/pip install -q --disable-pip-version-check -c $(PINS) uv
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(MAKE) --no-print-directory torch
	@$(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python -c $(PINS) -e '$(PARTS)' 2>/dev/null \
	  || $(BIN)/pip install -q --disable-pip-version-check -c $(PINS) -e '$(PARTS)'
	@touch $@

# Where there is no GPU, the CPU build of torch: without it a laptop fetches gigabytes of CUDA libraries.
# With a GPU (or SEMRAY_TORCH=gpu), the build that the package index offers first.
.PHONY: torch
torch: VERSION := $(shell sed -n 's/^torch==//p' $(PINS))
torch:
	@if [ -n "$(GPU)" ]; then \
	  $(BIN)/pip install -q --disable-pip-version-check -c $(PINS) torch; \
	else \
	  $(BIN)/pip install -q --disable-pip-version-check -c $(PINS) 'torch==$(VERSION)+cpu' 2>/dev/null || \
	    $(BIN)/uv pip install -q --python $(BIN)/python --torch-backend=cpu 'torch==$(VERSION)' 2>/dev/null || \
	    { echo "no CPU build of torch is in reach: installing the one with CUDA, which is larger"; \
	      $(BIN)/pip install -q --disable-pip-version-check -c $(PINS) torch; }; \
	fi

# WordNet 3.0: SEMRAY_WORDNET or an installed copy; else Debian's package; else NLTK's downloader.
wordnet: $(READY)
	@$(BIN)/python -c 'from corpora.sources.wordnet_files import locate; locate()' 2>/dev/null \
	  || { [ -n "$(SUDO_APT)" ] && { $(call apt,wordnet-base); }; } \
	  || $(BIN)/python -m nltk.downloader -q wordnet
	@$(BIN)/python -c 'from corpora.sources.wordnet_files import locate; locate()'

quickstart: $(READY) wordnet
	@$(BIN)/semray run studies/quickstart.yaml --ledger $(LEDGER)

# Tests wait for processes of their own as often as they compute, so four share two cores. What failed is run once more
# with the machine to itself, and both are shown: a fault of the code fails twice, a deadline of a full machine once.
TESTS := $(BIN)/python -m pytest -q -m "not long"

test: $(READY)
	@$(call apt,wordnet-base)
	@$(call apt,chromium chromium-driver)
	$(TESTS) -n 4 --dist loadfile --no-loadscope-reorder || { echo "once more, alone:"; $(TESTS) --last-failed --last-failed-no-failures none; }

# The cluster day of tests/cluster_day.py logs in by SSH and copies by rsync. What could not be run is said at the end.
test-long: $(READY)
	@$(call apt,wordnet-base)
	@$(call apt,chromium chromium-driver)
	@$(call apt,openssh-server openssh-client rsync)
	$(BIN)/python -m pytest -q

test-lowest: $(READY)
	@mkdir -p build
	@$(BIN)/uv pip compile -q --resolution lowest-direct --all-extras --python $(BIN)/python pyproject.toml -o build/lowest.txt
	@$(MAKE) --no-print-directory VENV=.venv-lowest PINS=build/lowest.txt test

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers auto
	-@$(MAKE) --no-print-directory audit

# What could not be checked is said: the service out of reach, or pins that it does not know.
audit: $(READY)
	@said=$$($(BIN)/pip-audit --no-deps --disable-pip --progress-spinner off --timeout 10 -r constraints.txt 2>&1); code=$$?; \
	unknown=$$(echo "$$said" | grep -c "could not be audited"); \
	case "$$said" in *requests.exceptions*) echo "audit: nothing was checked, the service cannot be reached"; exit 0;; esac; \
	echo "$$said" | grep -v "could not be audited\|^WARNING\|Skip Reason\|^-*  *-*$$"; \
	[ "$$unknown" = 0 ] || echo "audit: $$unknown pins are unknown to the service and were not checked"; \
	exit $$code

docs: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open site/tutorial.html"

bench: $(READY) wordnet
	@for script in $$(grep -l __main__ benchmarks/*.py | grep -v 'gpu\.py\|report_picture\.py\|goals\.py\|outdated\.py'); do echo "== $$script"; $(BIN)/python $$script || exit 1; done
	@$(BIN)/python benchmarks/goals.py
	@$(BIN)/python benchmarks/outdated.py

gpu: $(READY)
	$(BIN)/python benchmarks/gpu.py

clean:
	rm -rf $(VENV) .venv-lowest build site *.egg-info .pytest_cache .ruff_cache .mypy_cache
