# `make demo` shows the main job, `make test` passes every check, `make develop` prepares a working copy.
# All need Python 3.11 or newer with venv, gcc and make; everything else comes from PyPI.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CLUSTER_TESTS ?= tests/cluster

SOURCES := $(shell find src native -type f -not -name '*.pyc' -not -path 'src/lamina/_native*') pyproject.toml meson.build

.PHONY: demo test cluster-test develop clean
.DELETE_ON_ERROR:

demo: $(VENV)/.lamina
	@$(BIN)/lamina demo

test: $(VENV)/.lamina $(VENV)/.test-tools
	@$(BIN)/python -m tests.run

# Tests on a real cluster, brought up on this machine and taken down again. Needs root; see CONTRIBUTING.md.
cluster-test: $(VENV)/.lamina $(VENV)/.test-tools
	@LAMINA_CLUSTER_TEST=1 $(BIN)/python -m pytest $(CLUSTER_TESTS)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lamina needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.lamina: $(BIN)/python $(SOURCES)
	$(BIN)/pip install --quiet --disable-pip-version-check .
	@touch $@

$(VENV)/.test-tools: $(BIN)/python pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["test"], sep="\n")' > $@
	$(BIN)/pip install --quiet --disable-pip-version-check -r $@ || { rm $@; exit 1; }

# A working copy: Python from src, C rebuilt by `make develop` again. It replaces what the other commands installed.
develop: $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check '.[test]' meson ninja
	$(BIN)/pip uninstall --quiet --yes lamina
	test -d build || PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson setup build
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson compile -C build
	ln -sfn ../../build/native src/lamina/_native
	echo '$(CURDIR)/src' > $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/lamina.pth

clean:
	rm -rf $(VENV) build src/lamina/_native .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
