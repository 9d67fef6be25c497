# Three commands: `make demo` shows the main job, `make test` passes every check, `make develop` prepares a working copy.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src native -type f -not -path '*/__pycache__/*' -not -path 'src/lamina/_native*') pyproject.toml meson.build

.PHONY: demo test develop clean

demo: $(VENV)/.installed
	$(BIN)/lamina demo

test: $(VENV)/.installed-test
	$(BIN)/python -m tests.run

develop: $(VENV)/bin/python
	$(BIN)/pip install --quiet meson ninja
	test -d build || PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson setup build
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson compile -C build
	ln -sfn ../../build/native src/lamina/_native
