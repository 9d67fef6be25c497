# `make demo` shows the main job, `make test` passes every check, `make develop` prepares a working copy.
# All need Python 3.11 or newer with venv, gcc and make; everything else comes from PyPI, in the versions of locks/.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
LOCKED := $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes
TESTS  ?=
CLUSTER_TESTS ?= tests/cluster
CLUSTERS ?= 2
GPU_TEST ?=
ROOT_TESTS ?=

SOURCES := $(shell find src native lab deploy/helm -type f -not -name '*.pyc' -not -path '*/_native*' -not -path 'lab/build/*') pyproject.toml meson.build meson.options VERSION version.py

.PHONY: demo test root-test fuzz fuzz-programs fuzz-objects fuzz-texts programs cluster-test gpu-test packages deploy docs lock image release publish login publish-chart sign draft index develop clean
.DELETE_ON_ERROR:

demo: $(VENV)/.lamina
	@$(BIN)/lamina demo

test: $(VENV)/.lamina $(VENV)/.test-tools
	@$(BIN)/python -m tests.run $(TESTS)

# An hour of hostile words in the usage file under sanitizers; see docs/contributing/index.md.
fuzz: $(VENV)/.lamina $(VENV)/.test-tools
	@$(BIN)/python -m tests.facade.spoiling 60

# An hour of programs of random driver calls, with and without the facade.
fuzz-programs: $(VENV)/.lamina $(VENV)/.test-tools
	@$(BIN)/python -m tests.facade.differential.trying 60

# An hour of odd objects, from random seeds, for the whole controller and agent.
fuzz-objects: $(VENV)/.lamina $(VENV)/.test-tools
	@$(BIN)/python -m tests.hostile_objects.trying 60

# An hour of texts, pods and usage files, by what they reach in the code.
fuzz-texts: $(VENV)/.lamina $(VENV)/.test-tools
	@$(BIN)/pip install --quiet --disable-pip-version-check '.[fuzz]'
	@$(BIN)/python -m tests.fuzzing 60

# Debian's packages for the tests that skip without them. Needs root.
programs:
	@.ci/programs

# The documentation as a site, in site/; `$(BIN)/mkdocs serve` shows it while it is written.
docs: $(VENV)/.test-tools
	@$(BIN)/mkdocs build --strict

# Those tests that other users skip. `make test` runs them too, where root calls it.
root-test: $(VENV)/.lamina $(VENV)/.test-tools
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m root --ignore tests/cluster $(ROOT_TESTS) tests

# Tests on real clusters, brought up on this machine and taken down again. Needs root; see docs/contributing/cluster-tests.md.
cluster-test: $(VENV)/.lamina $(VENV)/.test-tools
	@LAMINA_CLUSTER_TEST=1 $(BIN)/python -m pytest -n $(CLUSTERS) --no-loadscope-reorder --durations=40 $(CLUSTER_TESTS)

# What this machine's GPU and driver do under limits, next to simgpu; see docs/how-to/gpu-test.md.
gpu-test: $(VENV)/.lamina
	@$(BIN)/python -m bench.gpu $(GPU_TEST)

# What an index gets: wheels for both architectures and for other machines, and the sources.
packages: $(VENV)/.lamina $(VENV)/.test-tools
	@$(BIN)/python -m release.wheels dist/packages

# What of deploy/ is not written by hand, such as the manifests. A test fails while it is out of date.
deploy: $(VENV)/.lamina
	$(BIN)/python -m tests.install.deploy_files

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lamina needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.lamina: export PATH := $(abspath $(BIN)):$(PATH)
$(VENV)/.lamina: $(BIN)/python $(SOURCES) locks/lab.txt
	$(LOCKED) -r locks/lab.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation . ./lab
	@touch $@

$(VENV)/.test-tools: $(BIN)/python locks/test.txt
	$(LOCKED) -r locks/test.txt
	@touch $@

# The image of this commit in an archive: with buildah, on a base of Debian's packages or on the one that BASE names by
# its digest. IMAGE is its name.
image: $(VENV)/.lamina $(VENV)/.test-tools
	@mkdir -p dist
	@$(BIN)/python -m release.image dist/lamina-image.tar $(if $(IMAGE),--name $(IMAGE)) $(if $(BASE),--base $(BASE))

# All files of a release in dist/, made twice from this commit and compared, with tests of each. See
# docs/contributing/release.md.
release: $(VENV)/.lamina $(VENV)/.test-tools
	@rm -rf dist
	@$(BIN)/python -m release dist $(if $(BASE),--base $(BASE))
	@LAMINA_RELEASE=dist $(BIN)/python -m pytest -q tests/release/test_release.py

# What `make release` made in dist/, to others; see docs/contributing/publishing.md. IMAGES is docker://REGISTRY/lamina,
# CHARTS oci://REGISTRY/charts, SIGNED the image without its tag. These need buildah, helm, cosign and gh, and no package
# of PyPI, because they run with the rights to publish.
publish:
	@$(PYTHON) -m release.publish dist $(IMAGES)

login:
	@for program in buildah helm cosign; do \
	    case $$program in helm) words="helm registry login" ;; *) words="$$program login" ;; esac; \
	    printf %s "$$TOKEN" | $$words --username "$$ACTOR" --password-stdin "$${REGISTRY%%/*}" || exit 1; \
	done

publish-chart:
	helm push dist/lamina-*.tgz $(CHARTS)

sign:
	cosign sign --yes $(SIGNED)@$$(cat dist/IMAGE_DIGEST)
	cosign sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS

draft:
	gh release create "$$GITHUB_REF_NAME" --draft --verify-tag --notes-file dist/CONTENTS.md dist/*

# Wheels and sources alone, in dist/index, as an index of packages takes them.
index:
	rm -rf dist/index && mkdir dist/index && cp dist/*.whl dist/*.tar.gz dist/index

# The newest versions that pyproject.toml and the lab's allow, with hashes. A test fails while a lock is out of date.
lock: $(VENV)/.test-tools
	$(BIN)/python -m release.locks

# A working copy: Python from the source folders, C rebuilt by `make develop` again. The metadata of both distributions
# stays installed, because commands and simulators are found by their entry points; the packages themselves go.
develop: export PATH := $(abspath $(BIN)):$(PATH)
develop: $(BIN)/python
	$(LOCKED) -r locks/test.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation . ./lab
	test -d build || meson setup build
	meson compile -C build
	test -d lab/build || meson setup lab/build lab
	meson compile -C lab/build
	ln -sfn ../../build/native src/lamina/_native
	ln -sfn ../../build/native lab/src/lamina_lab/_native
	packages=$$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
	&& rm -rf "$$packages/lamina" "$$packages/lamina_lab" \
	&& printf '%s\n' '$(CURDIR)/src' '$(CURDIR)/lab/src' > "$$packages/lamina.pth"

clean:
	rm -rf $(VENV) build site lab/build src/lamina/_native lab/src/lamina_lab/_native .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
