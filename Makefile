# The developers' verbs. Users need none of them: ./manet sets itself up.
#
#   make build     what ./setup.sh does
#   make check     ruff, rustfmt, clippy; warnings are errors
#   make test      ./manet test
#   make bench     speed of the medium, CPU share, lateness side by side, start and stop, radios, idle daemons, oracle, TCP per ACK (minutes)
#   make soak      a run of SOAK_S seconds, and whether its memory and descriptors are flat (an hour)
#   make fuzz      each fuzz target for FUZZ_S seconds
#   make nightly-provision  the Vagrantfile's provisioning in a fresh Debian 13, booted with its own kernel (as root; an hour)
#   make figures   tables and figure of the results in RESULTS, drawn anew
#   make lock      requirements*.in -> requirements*.lock, newest versions (on Python 3.11)
#   make clean     remove what was built (not results/)

CARGO ?= cargo
PYTHON = .venv/bin/python
FUZZ_S ?= 60
SOAK_S ?= 3600
SOAK_OUT ?= results/soak
RESULTS ?= results/demo

.PHONY: build check test bench soak fuzz nightly-provision figures lock clean

build:
	./setup.sh

check: build
	$(PYTHON) -m ruff check .
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

test:
	./manet test

bench: build
	$(PYTHON) -P -m tests.bench

soak: build
	$(PYTHON) -P -m tests.soak --duration="$(SOAK_S)" --out $(SOAK_OUT)

fuzz: build
	tests/fuzz.sh $(FUZZ_S)

nightly-provision:
	tests/fresh/provision.sh

figures: build
	./manet report $(RESULTS)

lock:
	$(PYTHON) -m pip install --quiet pip-tools
	$(PYTHON) -m piptools compile --quiet --upgrade --generate-hashes --strip-extras --no-annotate \
		--no-emit-find-links --no-emit-index-url --output-file requirements.lock requirements.in
	$(PYTHON) -m piptools compile --quiet --upgrade --generate-hashes --strip-extras --no-annotate \
		--no-emit-find-links --no-emit-index-url --output-file requirements-guests.lock requirements-guests.in

clean:
	rm -rf target .build .venv

export PYTHONPATH := $(CURDIR)
