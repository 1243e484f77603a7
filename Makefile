# For those who type make; the work is done by CMake (CMakePresets.json) and by scripts/.
.PHONY: build demo test format bench clean

build:
	@cmake --preset release >/dev/null
	@cmake --build build

demo:
	@scripts/demo

test:
	@scripts/test

format:
	@git ls-files '*.cc' '*.h' '*.c' | xargs clang-format -i

bench: build
	@build/bench/seam/seam size
	@build/bench/seam/seam reads
	@build/bench/seam/seam load --seconds 60

clean:
	@rm -rf build
