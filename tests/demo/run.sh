#!/bin/sh
# The demo's promises, from its own output: accuracy for its seed and as the median of seeds 1 to 5, the same
# file from training on every column with one and two threads, equal runs everywhere, a refused trace, and a
# report that needs nothing from elsewhere.
#   run.sh PROGRAM WORK
set -u
program=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
passed=0 failed=0 skipped=0
check() { # check NAME COMMAND...
    name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAIL $name"
    fi
}
at_least() { awk "BEGIN { exit !($1 >= $2) }"; }
contains() { grep -q -- "$1" "$2"; }
lacks() { ! grep -q -i -E -- "$1" "$2"; }
sha_of() { sed -n 's/^sha256 *\([0-9a-f]\{64\}\) .*/\1/p' "$1"; }

accuracies=
for seed in 1 2 3 4 5; do
    dir=$work/$seed
    mkdir -p "$dir"
    check "seed $seed runs" "$program" --seed $seed --dir "$dir" >"$dir/out" 2>"$dir/err"
    accuracies="$accuracies $(sed -n 's/^accuracy *\([0-9.]*\) %.*/\1/p' "$dir/out")"
done
echo "accuracy of seeds 1 to 5:$accuracies"
first=$(echo "$accuracies" | awk '{ print $1 }')
median=$(for a in $accuracies; do echo "$a"; done | sort -n | sed -n 3p)
check "seed 1 reads 98 % or more" at_least "${first:-0}" 98
check "the median of seeds 1 to 5 is 98 % or more" at_least "${median:-0}" 98

one=$work/1
check "the hash printed is that of the file" [ "$(sha_of "$one/out")" = "$(sha256sum <"$one/digits.onnx" | cut -c1-64)" ]
check "another seed gives another file" [ "$(sha_of "$one/out")" != "$(sha_of "$work/2/out")" ]
check "scalar runs agree" contains 'scalar  2 threads  6 runs, each equal to eager' "$one/out"
check "no run differs" lacks 'DIFFERENT|a bug' "$one/out"
check "a trace is refused" contains 'DataDependent' "$one/out"
check "nothing on stderr" [ ! -s "$one/err" ]
check "the report loads nothing" lacks '<script|<link|<img|src=|href=|url\(|@import|https?:' "$one/report.html"
check "the report follows the reader's theme" contains 'prefers-color-scheme:dark' "$one/report.html"
check "the report draws" contains '<polyline' "$one/report.html"

want=
for isa in scalar avx2 avx512; do
    for threads in 1 2; do
        dir=$work/$isa$threads
        mkdir -p "$dir"
        ONEMODEL_ISA=$isa ONEMODEL_THREADS=$threads "$program" --epochs 1 --dir "$dir" >"$dir/out" 2>"$dir/err"
        if grep -q "no $isa" "$dir/err"; then
            skipped=$((skipped + 1))
            continue
        fi
        got=$(sha_of "$dir/out")
        [ -n "$want" ] || want=$got
        check "training on $isa with $threads threads gives the same file" [ -n "$got" -a "$got" = "$want" ]
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
