#!/bin/sh
# The body of ./test: builds, runs the groups of tests/groups.txt by ctest label, and counts cases.
#
# A test program reports either as cmocka does or by a line "N passed, N failed, N skipped". One that ends
# badly without a count is one failed case. OM_BUILD_DIR and OM_CMAKE (options) choose another build.
set -eu
. scripts/bootstrap.sh
groups=$(awk '!/^#/ && NF {print $1}' tests/groups.txt)
if [ "${1:-}" = --list ]; then
    grep -v '^#' tests/groups.txt
    exit 0
fi
if [ "${1:-}" = long ]; then
    shift
    exec sh scripts/run_long.sh "$@"
fi
wanted=${*:-$groups}
for g in $wanted; do
    printf '%s\n' "$groups" | grep -qx "$g" || { om_say "no group '$g'; ./test --list shows them" >&2; exit 2; }
done

om_bootstrap test
build=${OM_BUILD_DIR:-build/test}
om_say "building ..."
# shellcheck disable=SC2086
om_build "$build" "" -DCMAKE_BUILD_TYPE=Release -DOM_TESTS=ON ${CI:+-DOM_WERROR=ON} ${OM_CMAKE:-}

# The oracle's venv, made once per content of the requirements file.
venv=build/venv
venv_ready() { [ "$(cat $venv/requirements.txt 2>/dev/null)" = "$(cat tests/requirements.txt)" ]; }
make_venv() {
    venv_ready && return 0
    command -v python3 >/dev/null 2>&1 || return 1
    om_say "making the oracle's venv (onnx, onnxruntime, numpy) ..."
    rm -rf $venv
    { python3 -m venv $venv && $venv/bin/pip install -q --no-input --require-hashes --only-binary=:all: \
        -r tests/requirements.txt; } >build/venv.log 2>&1 || return 1
    cp tests/requirements.txt $venv/requirements.txt
}
have() {
    case $1 in
    -) return 0 ;;
    python) command -v python3 >/dev/null 2>&1 ;;
    oracle) make_venv ;;
    torch) make_venv && $venv/bin/python -c 'import torch; assert torch.__version__.startswith("2.13.0")' >/dev/null 2>&1 ;;
    *) return 1 ;;
    esac
}

total_passed=0 total_failed=0 total_skipped=0
: >"$build/summary.txt"
for g in $wanted; do
    floor=$(awk -v g="$g" '$1 == g {print $2}' tests/floor.txt)
    needs=$(awk -v g="$g" '$1 == g {print $2}' tests/groups.txt)
    if ! have "$needs"; then
        om_say "skipped: $g (needs $needs: see tests/requirements*.txt)"
        if [ -s build/venv.log ] && ! venv_ready; then
            om_say "    the venv could not be made: $(tail -n 1 build/venv.log)"
            om_say "    the whole log: build/venv.log"
        fi
        echo "$g skipped" >>"$build/summary.txt"
        total_skipped=$((total_skipped + 1))
        continue
    fi
    log=$build/test-$g.log
    started=$(date +%s)
    (cd "$build" && OM_PYTHON="$PWD/../venv/bin/python" ctest -V -L "^$g\$" -j "${OM_TEST_JOBS:-$om_jobs}") >"$log" 2>&1 || :
    # shellcheck disable=SC2046
    set -- $(awk -f scripts/count_tests.awk "$log")
    passed=$1 failed=$2 skipped=$3
    if [ "$passed" -lt "${floor:-1}" ] && [ "$failed" -eq 0 ] && [ -n "${CI:-}" ] && [ -z "${OM_NO_FLOOR:-}" ]; then
        om_say "$g: $passed cases passed, the floor is $floor: tests have gone missing"
        failed=$((failed + 1))
    fi
    om_say "$g: $passed passed, $failed failed, $skipped skipped ($(($(date +%s) - started)) s)"
    echo "$g $passed $failed $skipped" >>"$build/summary.txt"
    if [ "$failed" -gt 0 ]; then
        grep -E '\[  FAILED  \]|\*\*\*|FAIL|Error at|error:|Segmentation|Subprocess|Timeout|No tests were' "$log" | head -n 40 | sed 's/^/    /'
        om_say "    the whole log: $log"
    fi
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    total_skipped=$((total_skipped + skipped))
done
om_say
om_say "$total_passed passed, $total_failed failed, $total_skipped skipped"
[ "$total_failed" -eq 0 ]
