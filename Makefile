# A thin face of meson: what takes more than a line is in .ci/.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60

.PHONY: help run build deps test test-long lint fmt bench fuzz arm64 install uninstall deb clean
.DEFAULT_GOAL := build

help:                        ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 12

run: build                   ## start the daemon, by default on :9090; make run ARGS='--log.level=debug'
	@exec build/exporter/waap serve $(ARGS)

build:                       ## the optimised build: build/exporter/waap
	@.ci/deps build
	@.ci/build

deps:                        ## install what building and testing need
	@.ci/deps build
	@.ci/deps test

test:                        ## unit and end-to-end tests
	@.ci/deps test
	@.ci/test

test-long:                   ## what takes too long for every change
	@.ci/deps long
	@.ci/lint deep
	@.ci/test -m 'long or not long'
	@.ci/fuzz 900

lint:                        ## formatting, static analysis, spelling
	@.ci/deps test
	@.ci/lint

fmt:                         ## format the C files
	@.ci/deps test
	@git ls-files '*.[ch]' | xargs clang-format -i

bench: build                 ## one table of speed and size against real peers; make bench BENCH=--short
	@.ci/deps bench
	@/usr/bin/python3 tests/bench/run.py $(BENCH)

fuzz:                        ## every fuzz target for FUZZ_SECONDS
	@.ci/deps test
	@.ci/fuzz $(FUZZ_SECONDS)

arm64:                       ## cross build and unit tests under qemu-user
	@.ci/arm64

install: build               ## into DESTDIR and PREFIX
	@meson configure build -Dprefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C build
	@$(if $(DESTDIR),:,[ "$$(id -u)" != 0 ] || ldconfig)

uninstall:                   ## remove what make install has installed
	@ninja -C build uninstall

deb:                         ## Debian packages into build/deb
	@.ci/deps deb
	@.ci/deb

clean:                       ## remove build/
	rm -rf build
