# Every target sets up what it needs, on a machine that has Python >= 3.11, cargo and make.
# Stamps say what is done already; `make clean` forgets everything.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
WHEELS := target/wheels
CI_WHEELS := target/ci-wheels
OPTIMISED := target/optimised-wheels
# What is compiled stays where cargo keeps it: CI does so between runs.
BUILT := $(or $(CARGO_TARGET_DIR),target)
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := $(BUILT)/tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Sources of the wheel; folders are listed too, so that a deleted file counts as a change.
SOURCES := $(shell find src python \( -name __pycache__ -o -name '*.so' \) -prune -o -print 2>/dev/null) \
	Cargo.toml Cargo.lock pyproject.toml README.md LICENSE
PYTHON_PATHS := python tests tools benches fuzz $(wildcard examples)

# One interpreter for every build, or cargo would compile PyO3 again for each.
export PYO3_PYTHON := $(CURDIR)/$(VENV)/bin/python
export PYTHONUTF8 := 1

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help demo test build develop optimised docs lint lint-rust lint-python lint-types bench bench-decode bench-mock bench-mirror bench-pace bench-speed clean test-build test-rust \
	test-python test-wheel test-integrations prepare-integrations test-extras test-long test-long-walks test-long-python test-long-soak notebook pictures fuzz sanitize audit release-check

help:
	@echo "make demo     start the mock, mirror it into ./chats/ twice, answer three questions"
	@echo "make test     build, lint, all tests that need no other program, the wheel on each Python found"
	@echo "make test-integrations  contract tests with the real Airflow, Spark, nginx, browsers and others; one of them: make test-spark"
	@echo "make test-long  210,000 simulated walks, a million requests with faults, kills, sanitizers, the slow integrations"
	@echo "make fuzz     five minutes for each fuzz target; needs cargo-fuzz"
	@echo "make sanitize Rust's tests under AddressSanitizer, Python objects under memcheck; needs valgrind"
	@echo "make build    a release build of the wheel, installed in $(VENV)"
	@echo "make develop  a quick build, installed in $(VENV): for the loop of edit and test"
	@echo "make optimised  the wheel for Linux as it is released, trained by a profile; needs llvm-profdata"
	@echo "make docs     the documentation site, in target/site, with its links and reference checked"
	@echo "make lint     rustfmt, clippy, cargo-deny, ruff, import-linter, mypy, basedpyright, stubtest, zizmor"
	@echo "make audit    known vulnerabilities of the crates and the extras; asks GitHub and PyPI"
	@echo "make release-check  what a release publishes, without publishing: version, wheel, SBOM, ABI, source archive"
	@echo "make notebook run the example notebook and keep its outputs"
	@echo "make pictures take the pictures of README.md again; needs chromium, as test-browser does"
	@echo "make bench    the cost of the import, the size of the wheel, and all that follow"
	@echo "make bench-decode  decoding in seconds and in instructions; needs valgrind"
	@echo "make bench-mock  the speed of the mock beside pytest-httpserver; needs wrk"
	@echo "make bench-mirror  the mirror beside other tools: rows lost, requests, speed; WRITE=--write updates docs/"
	@echo "make bench-pace  how much of a service's limit is used; WRITE=--write updates docs/"
	@echo "make bench-speed  reading beside other clients; ONLY=read,kinds,get ROUNDS=3 WRITE=--write"
	@echo "make clean    remove what was built, $(VENV) included"
	@echo
	@echo "PYTHON=python3.12 make ... chooses the interpreter; it must be 3.11 or later."

# With the release build if there is one.
demo: $(if $(wildcard $(STAMPS)/wheel),$(STAMPS)/wheel,$(STAMPS)/ci)
	$(BIN)/backread demo

test: $(STAMPS)/tools $(STAMPS)/docs $(STAMPS)/maturin
	$(BIN)/python tools/run_steps.py test-build+lint-python,docs lint-rust,test-rust+lint-types,test-wheel,test-python

test-build: $(STAMPS)/ci

build: $(STAMPS)/wheel

optimised: $(OPTIMISED)/stamp

develop: $(STAMPS)/tools
	@rm -f $(STAMPS)/wheel $(STAMPS)/ci
	VIRTUAL_ENV=$(CURDIR)/$(VENV) PIP_CONSTRAINT=constraints.txt $(BIN)/maturin develop --extras cli,mirror

lint: lint-rust lint-python lint-types

lint-rust: $(STAMPS)/venv $(CARGO_DENY)
	@cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
	cargo fmt --check
	cargo clippy --locked --profile ci --workspace --all-targets -- -D warnings
	cargo check --locked --profile ci --package backread-core --no-default-features
	$(CARGO_DENY) --workspace --locked check bans licenses sources

lint-python: $(STAMPS)/tools
	$(BIN)/ruff check $(PYTHON_PATHS)
	$(BIN)/ruff format --check $(PYTHON_PATHS)
	PYTHONPATH=python $(BIN)/lint-imports --no-cache
	$(BIN)/zizmor --offline --quiet --persona pedantic .github

lint-types: $(STAMPS)/ci $(STAMPS)/tools
	$(BIN)/mypy
	$(BIN)/mypy tests/typing
	$(BIN)/basedpyright
	MYPYPATH=python $(BIN)/python -m mypy.stubtest backread._backread

# From the sources only: it compiles nothing, and needs no network once its packages are installed.
docs: $(STAMPS)/docs
	rm -rf target/site
	$(BIN)/python tools/docs/check_names.py
	$(BIN)/zensical build --clean --strict
	$(BIN)/python tools/docs/llms.py
	$(BIN)/python tools/docs/check_site.py

test-rust: $(STAMPS)/venv
	cargo test --locked --profile ci --workspace --exclude backread

# Four workers, because tests also wait.
test-python: $(STAMPS)/ci $(STAMPS)/tools
	$(BIN)/python -m pytest --numprocesses 4 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder

test-wheel: $(STAMPS)/ci
	$(BIN)/python tools/check_wheel.py $(CI_WHEELS)

# Two chains, because tests also wait.
test-integrations: $(CI_WHEELS)/stamp
	$(BIN)/python tools/run_steps.py prepare-integrations \
		test-spark,test-services,test-shell,test-calc+test-airflow,test-browser,test-warehouses,test-openapi

# Needs neither the wheel nor .venv, so that it can run while Rust compiles. The environments are kept
# below ~/.cache/backread/integrations.
prepare-integrations:
	$(PYTHON) tools/find_packages.py
	$(PYTHON) tools/run_integration.py --prepare

INTEGRATIONS := airflow browser calc openapi services shell spark warehouses
LONG_INTEGRATIONS := services spark workers
# Which of Debian's programs each needs; pip brings the others.
PACKAGES_browser := browser
PACKAGES_calc := calc
PACKAGES_openapi := java
PACKAGES_services := services
PACKAGES_spark := java
PACKAGES_warehouses := services
.PHONY: $(INTEGRATIONS:%=test-%) $(LONG_INTEGRATIONS:%=test-long-%)
$(INTEGRATIONS:%=test-%): test-%: $(CI_WHEELS)/stamp
	$(if $(PACKAGES_$*),$(BIN)/python tools/find_packages.py $(PACKAGES_$*))
	$(BIN)/python tools/run_integration.py $* $(CI_WHEELS)
$(LONG_INTEGRATIONS:%=test-long-%): test-long-%: $(WHEELS)/stamp
	$(if $(PACKAGES_$*),$(BIN)/python tools/find_packages.py $(PACKAGES_$*))
	$(BIN)/python tools/run_integration.py $* $(WHEELS) -m long

test-browser: target/site/index.html
target/site/index.html: $(shell find docs -type f) zensical.toml
	@$(MAKE) --no-print-directory docs

test-extras: $(WHEELS)/stamp
	$(BIN)/python tools/resolve_extras.py $(WHEELS)

# All that takes too long for each change, with the release build. WALKS=1000000 make test-long walks longer, and
# SOAK_REQUESTS=10000000 soaks longer.
WALKS ?= 210000
SOAK_REQUESTS ?= 1000000
test-long: $(STAMPS)/tools
	$(BIN)/python tools/run_steps.py test-long-walks build test-long-python test-long-soak \
		$(LONG_INTEGRATIONS:%=test-long-%) test-extras sanitize

test-long-walks: $(STAMPS)/venv
	BACKREAD_WALKS=$(WALKS) cargo test --locked --profile test-long --package backread-core --lib \
		walk::tests::always -- --nocapture

test-long-python: $(STAMPS)/wheel $(STAMPS)/tools
	$(BIN)/python -m pytest -m long

test-long-soak: $(STAMPS)/wheel $(STAMPS)/tools
	$(BIN)/python tests/soak.py $(SOAK_REQUESTS)

pictures: $(CI_WHEELS)/stamp
	$(BIN)/python tools/find_packages.py browser
	$(BIN)/python tools/run_integration.py --script tools/pictures.py $(CI_WHEELS)

notebook: $(STAMPS)/wheel $(STAMPS)/tools
	$(BIN)/python tools/execute_notebook.py examples/notebook/chats.ipynb

audit: $(CARGO_DENY) $(STAMPS)/audit
	$(CARGO_DENY) --workspace --locked check advisories
	$(BIN)/python tools/audit_extras.py

# What the release workflow does, for this machine only.
RELEASE := target/release-check
release-check: $(WHEELS)/stamp $(STAMPS)/tools $(STAMPS)/release
	rm -rf $(RELEASE)/sdist
	$(BIN)/maturin sdist --out $(RELEASE)/sdist
	$(BIN)/python tools/check_release.py $(WHEELS) $(RELEASE)/sdist
	$(BIN)/python tools/check_wheel.py $(WHEELS)
	$(BIN)/zizmor --offline --quiet --persona pedantic .github

# A stable compiler takes the flags of cargo-fuzz and of the sanitizers with RUSTC_BOOTSTRAP.
# FUZZ_SECONDS=3600 make fuzz goes on for longer, FUZZ_TARGETS=url makes it one of them.
FUZZ_SECONDS ?= 300
FUZZ_TARGETS ?= page url walk
fuzz:
	@cargo fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz is missing; run: cargo install cargo-fuzz" >&2; exit 1; }
	@mkdir -p $(FUZZ_TARGETS:%=target/fuzz-found/%)
	rm -rf target/fuzz-seeds
	$(PYTHON) fuzz/seeds.py write target/fuzz-seeds
	for target in $(FUZZ_TARGETS); do \
		RUSTC_BOOTSTRAP=1 cargo fuzz run $$target target/fuzz-found/$$target target/fuzz-seeds/$$target -- \
			$$(ls fuzz/$$target.dict 2>/dev/null | sed s/^/-dict=/) -max_len=4096 -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

# The core and the mock under AddressSanitizer, which looks for leaks too; then what is written for C's
# interface to Python under memcheck, where each object has separate memory. CPython itself and libc
# have findings there, so those count that have a frame of ours.
MEMCHECK := valgrind --quiet --leak-check=no --num-callers=40 --log-file=target/memcheck.log
sanitize: $(STAMPS)/wheel $(STAMPS)/tools
	@valgrind --version >/dev/null 2>&1 || { echo "valgrind is missing; Debian: apt install valgrind" >&2; exit 1; }
	RUSTFLAGS=-Zsanitizer=address RUSTC_BOOTSTRAP=1 cargo test --locked --workspace --exclude backread --lib \
		--target $$(rustc -vV | sed -n 's/^host: //p') --target-dir $(BUILT)/sanitized
	PYTHONMALLOC=malloc $(MEMCHECK) $(BIN)/python -m pytest --quiet -o faulthandler_timeout=0 tests/decode/test_decoded_models.py
	@! grep --before-context=12 --after-context=12 -E '_backread\.abi3\.so|\.rs:[0-9]' target/memcheck.log

bench: $(STAMPS)/wheel
	$(BIN)/python benches/import_and_size.py $(WHEELS)
	@$(MAKE) --no-print-directory bench-decode
	@$(MAKE) --no-print-directory bench-mock
	@$(MAKE) --no-print-directory bench-mirror
	@$(MAKE) --no-print-directory bench-speed
	@$(MAKE) --no-print-directory bench-pace

bench-decode: $(STAMPS)/venv
	cargo bench --locked --package backread-core --bench decode
	$(BIN)/python benches/instructions.py

bench-mock: $(STAMPS)/wheel $(STAMPS)/bench
	$(BIN)/python benches/mock_server.py

bench-mirror: $(STAMPS)/wheel target/mirror-peers/dlt/stamp target/mirror-peers/airbyte/stamp
	$(BIN)/python benches/mirror_peers.py $(foreach peer,dlt airbyte,target/mirror-peers/$(peer)/bin/python) $(WRITE)

MIRROR_PEERS := target/mirror-peers/dlt/stamp target/mirror-peers/airbyte/stamp
bench-speed: target/speed/stamp $(MIRROR_PEERS) target/speed-peers/stamp
	cargo build --release --locked --manifest-path benches/peers/responder/Cargo.toml --target-dir target/peers
	target/speed/bin/python benches/speed.py $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(WRITE)

bench-pace: $(STAMPS)/wheel
	$(BIN)/python benches/service_limits.py $(WRITE)

clean:
	rm -rf $(VENV) target fuzz/target .cache .mypy_cache .pytest_cache .ruff_cache
	find python tests tools benches \( -name __pycache__ -o -name '*.so' \) -prune -exec rm -rf {} +

# --- what the targets stand on -------------------------------------------------------------

# Unoptimised: it takes less time to build, and runs for a second or two.
$(CARGO_DENY):
	env -u CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --debug --locked --no-default-features \
		--version $(CARGO_DENY_VERSION) --root $(BUILT)/tools/cargo-deny-$(CARGO_DENY_VERSION) --no-track cargo-deny

$(STAMPS)/venv:
	@$(PYTHON) -c '' 2>/dev/null || { echo "backread needs Python 3.11 or later, and '$(PYTHON)' does not start; name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("backread needs Python 3.11 or later, and $(PYTHON) is %d.%d; name one: make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt pip
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/maturin: $(STAMPS)/venv constraints.txt
	$(PIP) install --constraint constraints.txt --group build
	@touch $@

$(STAMPS)/tools: $(STAMPS)/venv constraints.txt pyproject.toml
	$(PIP) install --constraint constraints.txt --group dev
	@touch $@

$(STAMPS)/bench $(STAMPS)/audit $(STAMPS)/docs $(STAMPS)/release: $(STAMPS)/venv constraints.txt pyproject.toml
	$(PIP) install --constraint constraints.txt --group $(@F)
	@touch $@

# The peers need other versions of what the tools need, so each has a separate environment.
target/mirror-peers/%/stamp: benches/peers/mirror/%.txt
	@rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --requirement $<
	@touch $@

# Without pandas: pyarrow imports it where it is installed.
target/speed/stamp: $(OPTIMISED)/stamp constraints.txt pyproject.toml
	@rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt pip
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt --group bench
	for wheel in $(OPTIMISED)/backread-*.whl; do $(@D)/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt "$$wheel[cli,mirror]" || exit 1; done
	@touch $@

target/speed-peers/stamp: benches/peers/speed/peers.txt
	@rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --requirement $<
	@touch $@

$(WHEELS)/stamp: $(STAMPS)/maturin $(SOURCES)
	@mkdir -p $(WHEELS) && rm -f $(WHEELS)/backread-*.whl
	$(BIN)/maturin build --release --features jemalloc --locked --interpreter $(BIN)/python --out $(WHEELS)
	@touch $@

# As the release workflow builds it for Linux with glibc on x86-64: what tools/train_build.py runs
# decides what is optimised for speed. Two builds from nothing, so tests have the one above.
LLVM = $(shell rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
$(OPTIMISED)/stamp: $(STAMPS)/maturin $(SOURCES) tools/train_build.py constraints.txt
	@PATH="/usr/lib/llvm-$(LLVM)/bin:$$PATH" llvm-profdata --version 2>/dev/null | grep --quiet 'LLVM version $(LLVM)' || test -e "$$(dirname "$$(rustc --print target-libdir)")/bin/llvm-profdata" || \
		{ echo "llvm-profdata is missing; run: rustup component add llvm-tools; Debian: apt install llvm-$(LLVM)" >&2; exit 1; }
	@mkdir -p $(OPTIMISED) && rm -f $(OPTIMISED)/backread-*.whl
	PATH="/usr/lib/llvm-$(LLVM)/bin:$$PATH" PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/maturin build --release --pgo --features jemalloc --locked \
		--interpreter $(BIN)/python --target-dir $(BUILT)/optimised --out $(OPTIMISED)
	@touch $@

# For tests: compiles in a third of the time of a release build.
$(CI_WHEELS)/stamp: $(STAMPS)/maturin $(SOURCES)
	@mkdir -p $(CI_WHEELS) && rm -f $(CI_WHEELS)/backread-*.whl
	$(BIN)/maturin build --profile ci --locked --interpreter $(BIN)/python --out $(CI_WHEELS)
	@touch $@

# One of the two is installed, the last one made.
$(STAMPS)/wheel: $(WHEELS)/stamp constraints.txt
$(STAMPS)/ci: $(CI_WHEELS)/stamp constraints.txt
$(STAMPS)/wheel $(STAMPS)/ci:
	$(PIP) uninstall --yes backread 2>/dev/null
	for wheel in $(<D)/backread-*.whl; do $(PIP) install --constraint constraints.txt "$$wheel[cli,mirror]" || exit 1; done
	@rm -f $(STAMPS)/wheel $(STAMPS)/ci && touch $@
