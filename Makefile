# A menu without logic: every line calls a script or CMake, and CMake defines the build.
# Variables reach the scripts: MODEL=file.gguf (run, bench), ARGS="..." (run), PREFIX and DESTDIR (install), SAN=1
# (test), JOBS=N, VERBOSE=1.

.PHONY: help run build install uninstall package check-package test test-arm64 test-full test-peer check bench format fuzz gpu-check vulkan-validation vulkan-sanitize clean
.DEFAULT_GOAL := help

help:       ## this list
	@scripts/help.sh

run:        ## build the program and start it: make run MODEL=file.gguf ARGS="-p 'Once upon a time'"
	@scripts/run.sh

build:      ## build the program: build/infer
	@scripts/build.sh infer

install:    ## build and install the program, its manual pages and completion scripts: PREFIX=/usr/local, DESTDIR=
	@scripts/build.sh infer_package
	@scripts/install.sh install

uninstall:  ## remove what `make install` installed, with the same PREFIX and DESTDIR
	@scripts/build.sh infer_package
	@scripts/install.sh uninstall

package:    ## a portable tarball and a .deb, in build-package/out (KINDS="tarball deb tarball-arm64 deb-arm64")
	@scripts/package.sh $(KINDS)

check-package:  ## the packages on bare Debian and Ubuntu systems, as root
	@scripts/check_package.sh

test:       ## build and run the tests (SAN=1: unit tests under the address and undefined-behaviour sanitizers)
	@scripts/run_tests.sh

test-arm64: ## the tests of the core, cross-compiled for 64-bit Arm, under emulation
	@scripts/run_tests.sh --arm64

test-full:  ## the tests with every conformance case instead of the fixed subset
	@scripts/run_tests.sh --full

test-peer:  ## compare with other LLM programs (packages from npm)
	@scripts/test_peer.sh

check:      ## format, layers, file sizes, spelling, ISA hygiene and the tests: what a change must pass
	@scripts/check.sh

bench:      ## measure speed as a fraction of what this machine can do (MODEL=file.gguf, else random weights)
	@scripts/bench.sh

format:     ## format the C++ sources in place
	@scripts/format.sh

fuzz:       ## build the fuzz targets with clang and run each for a while
	@scripts/fuzz.sh

gpu-check:  ## tests and a table of speeds on this machine's GPU
	@scripts/gpu_check.sh

vulkan-validation:  ## the Vulkan backend under the Khronos validation layer
	@scripts/vulkan_validation.sh

vulkan-sanitize:    ## the whole program on Vulkan under the address and undefined-behaviour sanitizers
	@scripts/vulkan_sanitize.sh

clean:      ## remove the build folders
	@cmake -E rm -rf build build-san build-arm64 build-fuzz build-package build-package-amd64 build-package-arm64
