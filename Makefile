# SPDX-License-Identifier: GPL-2.0
# The front door.  Each target calls one script; each script says what it does with --help.
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help demo test check test-long kernel deb series kernel-deb clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
	@echo "Variables: JOBS=$(JOBS) runs at a time; SCTPMP_CACHE: where kernels are kept (default ~/.cache/sctp-multipath)"

demo: ## what a second path costs a stock SCTP sender, and the cure: builds two kernels, runs both, shows the result
	@tools/demo --jobs $(JOBS)

test: ## everything a change must pass; builds kernels on its first run
	@tools/test --jobs $(JOBS)

check: ## the quick half of it: seconds, no kernel
	@tools/check

test-long: ## what takes hours: every commit built, 1000 random outages, a part of the evidence measured again
	@tools/test-long --jobs $(JOBS)

kernel: ## build the patched kernel of the laboratory; the last line is where it is
	@tools/build/kernel --flavour patched

deb: ## the package sctp-multipath-dkms, which puts SCTP with the series into stock Debian kernels; prints the file
	@tools/build/deb

series: ## the series of each base as mail for git am, with a cover letter, in build/series/
	@tools/build/series

kernel-deb: ## a bootable kernel with the series as Debian packages; CONFIG=file, or Debian's configuration (hours)
	@tools/build/kernel-deb $(if $(CONFIG),--config $(CONFIG))

clean: ## remove build/ and results/; the cache outside the checkout stays
	@rm -rf build results
