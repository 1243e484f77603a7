# For those who type make; the work is done by CMake (CMakePresets.json) and by scripts/.
.PHONY: build demo test sim format bench clean

build:
	@cmake --preset release >/dev/null
	@cmake --build build

demo:
	@scripts/demo

test:
	@scripts/test

# make sim SEEDS=n: so many seeds of each kind of simulated cluster, from FIRST on
SEEDS ?= 200
FIRST ?= 1
sim: build
	@CONCLAVE_SIM_FIRST=$(FIRST) CONCLAVE_SIM_SEEDS=$(SEEDS) build/tests/sim_cluster_test

format:
	@git ls-files '*.cc' '*.h' '*.c' | xargs clang-format -i

bench: build
	@build/bench/seam/seam size
	@build/bench/seam/seam reads
	@build/bench/seam/seam load --seconds 60

clean:
	@rm -rf build
