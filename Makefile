# Targets for developers. Users need none of them: ./manet sets itself up. CONTRIBUTING.md describes the tiers of tests.
#
#   make build     run ./setup.sh
#   make quick     make lint, and the tests that need no root and are not slow (minutes)
#   make lint      ruff, shellcheck, mypy; rustfmt, clippy; fuzz targets and eBPF programs compile; warnings are errors
#   make test      ./manet test
#   make nightly   all longer jobs, listed in NIGHTLY below; each is also `make nightly-NAME` (as root; hours)
#   make bench     speed of the medium, also beside ns-2 and per frame by number of stations (medium/benches);
#                  CPU of a campaign by program, lateness of parallel runs, start and stop, radios, idle daemons,
#                  oracle, TCP per ACK, a capture of 1 GB beside tshark (minutes; two checkouts in turn:
#                  .venv/bin/python -P -m tests.bench.pace --against DIR)
#   make soak      a run of SOAK_S seconds that checks that memory and descriptors stay flat (an hour)
#   make fuzz      each fuzz target for FUZZ_S seconds
#   make figures   regenerate tables and figure of the results in RESULTS
#   make notebooks execute the notebooks of examples/ and keep their outputs in the files, if all runs are valid
#   make site      the documentation site, SITE (.build/site); a broken link ends it (first ./setup.sh --pages; docs/site/README.md)
#   make image     an OCI image of the testbed: .build/manet-image.tar (as root, with mmdebstrap and buildah; image/README.md)
#   make wheel     the client for other projects' tests, .build/wheel (docs/testing-with-pytest.md)
#   make sbom      the list of components, .build/sbom.cdx.json (image/sbom.py)
#   make deb       a Debian package for this machine's release, .build/deb (debian/rules; build-essential, debhelper)
#   make arm64     cross-compile Rust and eBPF programs for arm64; Rust's unit tests under QEMU's user emulation (minutes)
#   make schema    regenerate formats/schema from our programs' declarations of their keys
#   make lock      requirements*.in -> requirements*.lock, newest versions (on Python 3.11)
#   make clean     remove build outputs (not results/)

CARGO ?= cargo
PYTHON = .venv/bin/python
FUZZ_S ?= 60
SOAK_S ?= 3600
SOAK_OUT ?= results/soak
RESULTS ?= results/demo
SITE ?= .build/site
SCRIPTS = manet setup.sh .ci/run debian/manet.postinst debian/manet.prerm $(wildcard image/*.sh tests/*.sh tests/*/*.sh testbed/*/*.sh)
# They run in this order. The first failure ends `make nightly`; `make -k nightly` continues.
NIGHTLY = fresh-12 fresh-13 user deb-12 deb-13 image arm64 guests vagrant provision interop slurm faults fuzz soak

.PHONY: build develop quick lint lint-python lint-shell lint-rust lint-bpf check test nightly $(NIGHTLY:%=nightly-%) \
	bench soak fuzz figures notebooks site image wheel sbom arm64 deb schema lock clean

build:
	./setup.sh

develop:
	./setup.sh --develop

quick: lint
	./manet test --rootless --quick

check: lint

lint: lint-python lint-shell lint-rust lint-bpf

lint-python: develop
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check --quiet .
	$(PYTHON) -m mypy

lint-shell: develop
	.venv/bin/shellcheck $(SCRIPTS)

# Debian's own cargo has neither rustfmt nor clippy; rustup installs both. The check does not need libFuzzer, a C++ build.
lint-rust: build
	@if $(CARGO) fmt --version >/dev/null 2>&1; then set -x; $(CARGO) fmt --all --check; \
	else echo "lint-rust: rustfmt skipped: cargo has none; apt-get install rustfmt, or rustup component add rustfmt"; fi
	@if $(CARGO) clippy --version >/dev/null 2>&1; then set -x; $(CARGO) clippy --release --workspace --all-targets --locked -- -D warnings; \
	else echo "lint-rust: clippy skipped: cargo has none; apt-get install rust-clippy, or rustup component add clippy"; fi
	cd fuzz && CUSTOM_LIBFUZZER_PATH=/dev/null RUSTFLAGS="--cfg fuzzing -D warnings" $(CARGO) check --release --bins --locked --quiet

lint-bpf: build
	$(MAKE) -C kernel-tcp BUILD=$(CURDIR)/.build/kernel-tcp

test:
	./manet test

nightly: $(NIGHTLY:%=nightly-%)

# Setup and all tests in a fresh Debian root file system that has only git.
nightly-fresh-12 nightly-fresh-13: nightly-fresh-%:
	tests/fresh/fresh.sh $* ./manet test

# The same as an ordinary user without sudo, with root's demo beside theirs.
nightly-user:
	tests/fresh/user.sh 13

# The Containerfile, with a base of Debian's packages.
nightly-image:
	command -v podman >/dev/null || apt-get -qq -y --no-install-recommends install podman crun </dev/null
	tests/fresh/image.sh

# The package is built in one fresh system, and installed, used and purged in another.
nightly-deb-12 nightly-deb-13: nightly-deb-%:
	tests/fresh/deb.sh $*

nightly-arm64: build
	command -v qemu-aarch64 >/dev/null || apt-get -qq -y --no-install-recommends install \
		gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user </dev/null
	rustup target add aarch64-unknown-linux-gnu
	$(MAKE) arm64

nightly-guests: build
	./setup.sh --guests
	./manet test --guests

nightly-vagrant: build
	command -v vagrant >/dev/null || apt-get -qq -y --no-install-recommends install vagrant vagrant-libvirt </dev/null
	./manet test tests/test_vagrantfile.py

# The Vagrantfile's provisioning in a fresh Debian 13, booted with its own kernel (an hour).
nightly-provision:
	tests/fresh/provision.sh

# Programs that are not installed are skipped and named: tests/interop/README.md.
nightly-interop: build
	./manet test --interop tests/interop

nightly-slurm:
	./setup.sh --cluster
	command -v slurmctld >/dev/null || apt-get -qq -y --no-install-recommends install slurm-wlm munge </dev/null
	./manet test tests/slurm

# Each process and each file of a run, with each fault, at each stage (an hour).
nightly-faults: build
	./manet test --nightly tests/faults

nightly-fuzz: fuzz

nightly-soak: soak

bench: build
	$(PYTHON) -P -m tests.bench
	$(CARGO) bench --quiet -p manet-medium --bench frames

soak: build
	$(PYTHON) -P -m tests.soak --duration="$(SOAK_S)" --out $(SOAK_OUT)

fuzz: build
	tests/fuzz.sh $(FUZZ_S)

figures: build
	./manet report $(RESULTS)

# Real runs, some two minutes of an idle machine.
notebooks:
	@$(PYTHON) -c 'import nbclient, ipykernel' 2>/dev/null || { echo "make notebooks: .venv has no nbclient; run ./setup.sh --pages" >&2; exit 2; }
	PYTHONPATH=$(CURDIR) $(PYTHON) -P -m examples.notebooks.publish

# Without --quiet: MkDocs counts only those warnings that it prints, and --strict ends a build that has some.
site:
	@$(PYTHON) -c 'import material' 2>/dev/null || { echo "make site: .venv has no MkDocs; run ./setup.sh --pages" >&2; exit 2; }
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -P -m mkdocs build --strict --site-dir $(SITE)
	@echo "written   $(SITE)/index.html"

image: build
	image/build.sh

wheel: build
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir .build/wheel .

sbom: build
	$(PYTHON) -P -m image.sbom >.build/sbom.cdx.json

# QEMU loads the libraries of libc6-arm64-cross. The unit tests are those in the crates' own sources; the last line counts them.
# User emulation opens no generic netlink socket, which one test needs.
# manet-tcp needs an arm64 libbpf and is not linked; the eBPF programs are compiled with the arm64 headers of the kernel.
ARM64 = aarch64-unknown-linux-gnu
arm64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER = aarch64-linux-gnu-gcc
arm64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER = qemu-aarch64 -L /usr/aarch64-linux-gnu
arm64:
	@command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null || \
		{ echo "make arm64: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" >&2; exit 2; }
	$(MAKE) -C kernel-tcp BUILD=$(CURDIR)/.build/arm64 MULTIARCH=../aarch64-linux-gnu/include bpf
	$(CARGO) build --release --locked --workspace --target $(ARM64)
	$(CARGO) test --release --locked --workspace --lib --bins --target $(ARM64) --no-fail-fast -- \
		--skip the_kernel_answers_which_families_it_has >.build/arm64/tests.log 2>&1 || \
		{ grep -E '^(test .* FAILED|error)' .build/arm64/tests.log; exit 1; }
	@awk '/^test result:/ { passed += $$4; failed += $$6; ignored += $$8 } \
		END { printf "arm64: %d unit tests passed, %d failed, %d ignored\n", passed, failed, ignored; exit !passed || failed }' \
		.build/arm64/tests.log

# dpkg-buildpackage writes beside the tree.
deb: build
	@command -v dpkg-buildpackage >/dev/null && command -v dh >/dev/null || { echo "make deb: apt-get install build-essential debhelper" >&2; exit 2; }
	dpkg-buildpackage --build=binary --no-sign
	mkdir -p .build/deb
	mv ../manet_*.deb ../manet_*.buildinfo ../manet_*.changes .build/deb/

# The output goes to a temporary file first: if a program fails, the old file remains.
schema: build
	for name in $(notdir $(basename $(wildcard formats/schema/*.json))); do \
		case $$name in \
			medium|radio) set -- target/release/manet-medium schema $$name ;; \
			*) set -- target/release/manet-$$name schema ;; \
		esac; \
		"$$@" >.build/schema.json && mv .build/schema.json formats/schema/$$name.json || exit; \
	done

lock:
	$(PYTHON) -m pip install --quiet pip-tools
	for name in requirements requirements-develop requirements-pages requirements-cluster requirements-guests; do \
		$(PYTHON) -m piptools compile --quiet --upgrade --generate-hashes --strip-extras --no-annotate \
			--no-emit-find-links --no-emit-index-url --output-file $$name.lock $$name.in || exit; \
	done

clean:
	rm -rf target .build .venv

export PYTHONPATH := $(CURDIR)
