# A thin front end to meson: `make run` demonstrates Berth, `make test` tests it, `make help` lists the other targets.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
# Continuous integration turns warnings into errors, as its compilers are known.
WERROR ?= false
FUZZ_SECONDS ?= 60
# A part of a test's name: `make test T=base` builds and runs only those tests.
T ?=
# make soak: the number of clusters, and the virtual hours of each.
SEEDS ?= 2000
HOURS ?= 6
# make soak-tests: runs of each test, tests at a time, and processes that only compute beside them.
N ?= 50
JOBS ?=
HOGS ?=
# make install: additional options of meson, for tools/check-install.
INSTALL_OPTIONS ?=
# make run: --once ends after the example.
ONCE ?=
# make bench-traces: --all includes long simulations; sections by name.
ALL ?=
S ?=
# make bench-kube: options of tests/kube/bench.py.
K ?=

GCC = $(BUILD)/gcc
GCC_OPTIONS = -Dwerror=$(WERROR)
# Configured for clang-tidy, which checks clang's warnings about every file; never compiled.
CLANG = $(BUILD)/clang
CLANG_OPTIONS = -Dwerror=true --native-file=tools/clang.ini
# The build of another compiler, with the bugs of base/plant.h: for tests that only compute, for replays, for
# plants_check.sh.
OTHER = $(BUILD)/other
OTHER_OPTIONS = $(CLANG_OPTIONS) -Doptimization=2 -Dplant=true
OTHER_TESTS = base/ core/ wire/ formula/ journal/
SANITIZE = $(BUILD)/sanitize
# No warnings: gcc's instrumentation causes false ones. -O1: compiling takes longer than running, and their sum is
# lowest.
SANITIZE_OPTIONS = -Dwarning_level=0 -Doptimization=1 -Db_sanitize=address,undefined
SANITIZE_ENV = ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
FUZZ = $(BUILD)/fuzz
FUZZ_OPTIONS = -Dwerror=$(WERROR) -Dfuzz=true -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false \
    --native-file=tools/clang.ini

.DEFAULT_GOAL := help

##: for users

run: ## build Berth and run a cluster on this machine until Ctrl-C (ONCE=--once: only the example)
	@tools/setup run
	@tools/build $(GCC) "$(GCC_OPTIONS)" src/cli/berth src/berthd/berthd src/agent/berth-agent src/shim/berth-shim
	@tools/run $(ONCE) $(abspath $(GCC))

show: ## build Berth, plan the example cluster and one of a hundred thousand nodes
	@tools/setup run
	@tools/build $(GCC) "$(GCC_OPTIONS)" src/cli/berth
	@tools/show $(GCC)/src/cli/berth

test: ## build with gcc, run unit and property tests (T=part-of-a-name for some)
	@tools/setup run test
	@tools/test --options="$(GCC_OPTIONS)" $(GCC) $(T)

bench: ## measure planning and the daemon on this machine
	@tools/setup run
	@tools/build $(GCC) "$(GCC_OPTIONS)" src/cli/berth src/berthd/berthd src/agent/berth-agent src/shim/berth-shim
	@BERTH_BUILD=$(abspath $(GCC)) bench/run

bench-traces: ## simulate public traces, compare with published results (BERTH_TRACES, ALL=--all, S=section)
	@tools/setup run test
	@tools/build $(GCC) "$(GCC_OPTIONS)" src/cli/berth
	@tools/bench-traces $(GCC)/src/cli/berth $(ALL) $(S)

bench-kube: ## compare kube-scheduler, berth-kube and the limit of a real API server (K="--nodes 100")
	@tools/setup run test
	@tools/build $(GCC) "$(GCC_OPTIONS)" all bench/kube_load_bench
	@tools/kube >/dev/null
	@BERTH_BUILD=$(abspath $(GCC)) python3 tests/kube/bench.py $(K)

install: ## install program, library, header (DESTDIR, PREFIX)
	@tools/setup run
	@tools/build $(BUILD)/install "--prefix=$(PREFIX) -Dtests=false $(INSTALL_OPTIONS)" all
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)/install --no-rebuild --quiet
	@[ -n "$(DESTDIR)" ] || ldconfig

clean: ## remove everything that was built
	rm -rf $(BUILD)

##: for developers

build: ## build everything with gcc
	@tools/setup run
	@tools/build $(GCC) "$(GCC_OPTIONS)" all

setup: ## install the packages that building, testing and checking need
	@tools/setup run test check

lint: ## formatting, static analysis, includes, symbols, sizes, scripts
	@tools/setup run test check
	@tools/build $(CLANG) "$(CLANG_OPTIONS)"
	@tools/lint $(GCC) "$(GCC_OPTIONS)" $(CLANG)

format: ## format all C files in place
	@tools/setup check
	@tools/files '*.c' '*.h' | xargs clang-format -i

check: ## long checks: clang, sanitizers, fuzzers, long tests, installation
	@tools/tally check-clang sanitize fuzz-briefly check-long check-install

check-clang: ## tests that only compute (or T), built by clang
	@tools/setup run test check
	@tools/test --programs --options="$(OTHER_OPTIONS)" $(OTHER) $(or $(T),$(OTHER_TESTS))

sanitize: ## the tests of `make test` under the address and undefined-behaviour sanitizers
	@tools/setup run test
	@$(SANITIZE_ENV) tools/test --sanitized --slow 5 --options="$(SANITIZE_OPTIONS)" $(SANITIZE) $(T)

fuzz: ## every fuzzer for FUZZ_SECONDS (default 60)
	@tools/setup run test check
	@tools/fuzz $(FUZZ) "$(FUZZ_OPTIONS)" $(FUZZ_SECONDS) $(T)

fuzz-briefly:
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=5

kube: ## build the Kubernetes of the tests, once; without Go these tests are skipped
	@tools/kube || [ $$? = 77 ]

kube-expected: ## record what kube-scheduler does with the corpus of tests/kube
	@tools/kube >/dev/null
	@python3 tests/kube/compare.py --save

check-long: ## *_check.c and *_check.sh; of heavy ones a small part
	@tools/setup run test check
	@tools/test-beds "$(T)"
	@tools/build $(OTHER) "$(OTHER_OPTIONS)" src/cli/berth
	@BERTH_OTHER=$(abspath $(OTHER)) tools/test --suite check --options="$(GCC_OPTIONS)" $(GCC) $(T)

beds: ## all heavy tests: Kubernetes, guests, browsers, many seeds, kills and decisions (T=part-of-a-name for some)
	@tools/setup run test check
	@tools/test-beds "$(T)"
	@tools/build $(OTHER) "$(OTHER_OPTIONS)" src/cli/berth
	@BERTH_OTHER=$(abspath $(OTHER)) tools/test --suite check --beds --options="$(GCC_OPTIONS)" $(GCC) $(T)

# Compiles the code of later targets of `make check`, to be run beside other targets with their idle CPU time.
build-ahead:
	@tools/build $(OTHER) "$(OTHER_OPTIONS)" src/cli/berth
	@tools/build $(SANITIZE) "$(SANITIZE_OPTIONS)" -k 0 all
	@tools/fuzz --build $(FUZZ) "$(FUZZ_OPTIONS)"

soak-tests: ## run tests with T in their names N times, to find unstable ones (N, T, JOBS, HOGS; SANITIZED=1)
	@[ -n "$(T)" ] || { echo "which tests? make soak-tests N=50 T=part-of-a-name" >&2; exit 2; }
	@tools/setup run test
	@$(if $(SANITIZED),$(SANITIZE_ENV)) tools/soak-tests \
	    $(if $(SANITIZED),--slow 5 --options="$(SANITIZE_OPTIONS)",--options="$(GCC_OPTIONS)") \
	    $(if $(JOBS),--jobs $(JOBS)) $(if $(HOGS),--hogs $(HOGS)) $(if $(SANITIZED),$(SANITIZE),$(GCC)) $(N) $(T)

soak: ## simulate clusters under thousands of seeds until an invariant breaks (SEEDS, HOURS)
	@tools/setup run
	@tools/build $(GCC) "$(GCC_OPTIONS)" src/cli/berth
	@tools/soak $(GCC)/src/cli/berth $(SEEDS) $(HOURS)

check-install: ## install to a scratch folder and build the example against it
	@tools/setup run test
	@tools/check-install $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^##: /{sub("##: ", ""); print "\n" $$0 ":"} \
	    /^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' \
	    $(firstword $(MAKEFILE_LIST))

.PHONY: setup run show test bench bench-traces bench-kube kube kube-expected install clean build lint format check \
    check-clang sanitize fuzz fuzz-briefly check-long beds build-ahead soak soak-tests check-install help
