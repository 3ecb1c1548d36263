#!/bin/sh
# ./test long: what takes longer than a coffee. Each step that passes leaves a mark in build/long/, so a run that
# was stopped goes on where it was; a new commit starts anew. A row per step goes to docs/evidence.md.
#   ./test long            all steps       ./test long STEP...    some of them
# Steps: unary-COLUMN (2^32 inputs of each correctly rounded function), qemu-aarch64, qemu-riscv64 (the golden hashes
# on another architecture), fuzz (every fuzzer for three minutes), scale (100,000 of everything), tsan (exact and faults
# under the thread sanitizer), mutants (one-line faults, each of which must be noticed), chroot (both commands in a bare Debian 12; needs root and debootstrap).
set -eu
. scripts/bootstrap.sh
om_bootstrap test
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
marks=build/long/$commit
mkdir -p "$marks"
build=build/test
om_build $build "" -DCMAKE_BUILD_TYPE=Release -DOM_TESTS=ON

evidence() { # evidence STEP RESULT SECONDS
    printf '| %s | %s | %s | %s | %s s | %s |\n' "$1" "$2" "$(date -u +%Y-%m-%d)" "$commit" "$3" "${cpu:-unknown}" >>docs/evidence.md
}
passed=0 failed=0 skipped=0
step() { # step NAME COMMAND...
    name=$1
    shift
    if [ -f "$marks/$name" ]; then
        om_say "$name: done before"
        passed=$((passed + 1))
        return
    fi
    from=$(date +%s)
    om_say "$name ..."
    rc=0
    "$@" >"$marks/$name.log" 2>&1 || rc=$?
    took=$(($(date +%s) - from))
    if [ $rc -eq 0 ]; then
        passed=$((passed + 1))
        tail -n 12 "$marks/$name.log" | sed 's/^/    /'
        evidence "$name" "$(tail -n 1 "$marks/$name.log")" $took
        touch "$marks/$name"
    elif [ $rc -eq 77 ]; then
        skipped=$((skipped + 1))
        om_say "skipped: $name ($(tail -n 1 "$marks/$name.log"))"
    else
        failed=$((failed + 1))
        om_say "$name FAILED after $took s:"
        tail -n 12 "$marks/$name.log" | sed 's/^/    /'
    fi
}
skip() { echo "$1"; exit 77; }

unary() ( # all functions of one column
    $build/tests/long/long_unary -c "$1" -s "$marks/unary-$1.state"
)

emulate() ( # emulate ARCH: the golden hashes in an emulator
    cc=$1-linux-gnu-gcc run=qemu-$1-static
    command -v "$cc" >/dev/null && command -v "$run" >/dev/null || skip "needs $cc and $run (gcc-$1-linux-gnu, qemu-user-static)"
    cmake -S . -B "build/$1" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$1" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_EXE_LINKER_FLAGS=-static -DCMAKE_BUILD_TYPE=Release -DOM_TESTS=ON -DOM_PLAIN_TESTS=ON -DOM_SHARED=OFF -DOM_CLI=OFF \
        -DOM_EXAMPLES=OFF -DOM_WIDE16=OFF
    cmake --build "build/$1" -j "$om_jobs" --target hashes
    "$run" "build/$1/tests/whole/hashes"
)

fuzz() ( # the fuzzers of ./test fuzz, three minutes each, under the sanitizers
    OM_FUZZ_SECONDS=${OM_FUZZ_SECONDS:-180} OM_BUILD_DIR=build/long-asan OM_NO_FLOOR=1 \
        OM_CMAKE="-DCMAKE_BUILD_TYPE=RelWithDebInfo -DOM_SANITIZE=address,undefined" sh scripts/run_tests.sh fuzz
)

scale() ( # 100,000 of each kind, once; and instructions at 5,000 and 20,000 where there is valgrind
    command -v python3 >/dev/null || skip "needs python3"
    python3 tests/scale/run.py $build/tests/scale/scale --long && python3 tests/scale/run.py $build/tests/scale/scale
)

tsan() ( # the groups that CI has no time for under this sanitizer
    OM_BUILD_DIR=build/long-tsan OM_NO_FLOOR=1 OM_CMAKE="-DCMAKE_BUILD_TYPE=RelWithDebInfo -DOM_SANITIZE=thread" \
        sh scripts/run_tests.sh exact faults
)

mutants() ( # every patch of tests/mutants must be noticed by the test that it names
    command -v python3 >/dev/null && command -v patch >/dev/null || skip "needs python3 and patch"
    python3 tests/mutants/run.py --table "$marks/mutants.md"
)

chroot_run() ( # both commands as a newcomer has them
    [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || skip "needs root and debootstrap"
    sh scripts/chroot_run.sh
)

steps=${*:-unary-scalar unary-avx2 unary-avx512 qemu-aarch64 qemu-riscv64 fuzz scale tsan mutants chroot}
for s in $steps; do
    case $s in
    unary-*)
        if [ "$s" = unary-avx512 ] && ! grep -qw avx512dq /proc/cpuinfo; then
            om_say "skipped: $s (this machine has no AVX-512)"
            skipped=$((skipped + 1))
        else
            step "$s" unary "${s#unary-}"
        fi
        ;;
    qemu-*) step "$s" emulate "${s#qemu-}" ;;
    mutants | fuzz | scale | tsan) step "$s" "$s" ;;
    chroot) step "$s" chroot_run ;;
    *) om_say "no step '$s'" >&2; exit 2 ;;
    esac
done
om_say
om_say "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
