# The README's two commands for people who have make; everything else is CMake's.
.PHONY: demo test install bench clean
demo:
	./demo
test:
	./test
install:
	cmake --preset demo && cmake --build build/demo && cmake --install build/demo
bench:
	python3 bench/run.py
clean:
	rm -rf build
