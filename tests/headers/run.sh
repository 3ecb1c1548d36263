#!/bin/sh
# Public headers compile alone as C99 to C23 and C++11 to C++20, with every warning an error; a project
# outside the tree finds the installed library by CMake and by pkg-config, links it both ways and runs.
#   run.sh SOURCE BUILD
set -u
source=$1 build=$2
work=$build/headers-test
rm -rf "$work"
mkdir -p "$work"
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAIL $1"
    sed 's/^/    /' "$work/log" | head -n 20
}
check() { # check NAME COMMAND...
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then ok; else bad "$name"; fi
}
for header in onemodel.h $(cd "$source/include" && ls onemodel/*.h); do
    printf '#include <%s>\nint unused_(void);\nint unused_(void) { return 0; }\n' "$header" >"$work/t.c"
    cp "$work/t.c" "$work/t.cc"
    case $header in onemodel/callsite.h) only_c=1 ;; *) only_c= ;; esac
    for compiler in gcc clang-14; do
        command -v $compiler >/dev/null 2>&1 || { skipped=$((skipped + 1)); continue; }
        for std in c99 c11 c17 c2x; do
            check "$header as $std with $compiler" $compiler -std=$std -Wall -Wextra -Wpedantic -Wstrict-prototypes \
                -Wshadow -Werror -I"$source/include" -fsyntax-only "$work/t.c"
        done
    done
    [ -z "$only_c" ] || continue
    if command -v g++ >/dev/null 2>&1; then
        for std in c++11 c++14 c++17 c++20; do
            check "$header as $std" g++ -std=$std -Wall -Wextra -Wpedantic -Wold-style-cast -Werror \
                -I"$source/include" -fsyntax-only "$work/t.cc"
        done
    else
        skipped=$((skipped + 4))
    fi
done

prefix=$work/prefix
check "install" cmake --install "$build" --prefix "$prefix"
cp -r "$source/tests/headers/consumer" "$work/consumer"
for kind in shared static; do
    check "consumer configures ($kind)" cmake -S "$work/consumer" -B "$work/c-$kind" -DCMAKE_PREFIX_PATH="$prefix" -DKIND=$kind
    check "consumer builds ($kind)" cmake --build "$work/c-$kind"
    check "consumer runs ($kind)" env LD_LIBRARY_PATH="$prefix/lib:$prefix/lib/x86_64-linux-gnu:$prefix/lib64" "$work/c-$kind/consumer"
done
if command -v pkg-config >/dev/null 2>&1; then
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name onemodel.pc | head -n 1)")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046
    check "consumer by pkg-config" gcc -std=c11 -o "$work/pc" "$work/consumer/main.c" $(pkg-config --cflags --libs onemodel)
    check "it runs" env LD_LIBRARY_PATH="$(pkg-config --variable=libdir onemodel)" "$work/pc"
else
    skipped=$((skipped + 2))
fi
# Static only, as the README's demo preset installs it: the library of this build, the files that such a configuration
# gives. A stand-in is configured, not built: only its installed text matters.
cmake -S "$source" -B "$work/alone" -DCMAKE_BUILD_TYPE=Release -DOM_SHARED=OFF -DOM_CLI=OFF -DOM_EXAMPLES=OFF >"$work/log" 2>&1 ||
    bad "static only: configure"
cp "$build/libonemodel.a" "$work/alone/libonemodel.a"
alone=$work/alone-prefix
check "static only: install" env DESTDIR= cmake -DCMAKE_INSTALL_PREFIX="$alone" -P "$work/alone/cmake_install.cmake"
if command -v pkg-config >/dev/null 2>&1; then
    PKG_CONFIG_PATH=$(dirname "$(find "$alone" -name onemodel.pc | head -n 1)")
    flags=$(pkg-config --cflags --libs onemodel)
    static_flags=$(pkg-config --static --cflags --libs onemodel)
    for compiler in gcc clang-14; do
        command -v $compiler >/dev/null 2>&1 || { skipped=$((skipped + 2)); continue; }
        # All of the library is wanted, so that whatever any program needs of libm and threads is there.
        # shellcheck disable=SC2086
        check "a static-only install links as README says" $compiler -o "$work/alone-plain" "$work/consumer/main.c" -Wl,--whole-archive $flags -Wl,--no-whole-archive
        # shellcheck disable=SC2086
        check "a static-only install links by --static" $compiler -o "$work/alone-static" "$work/consumer/main.c" -Wl,--whole-archive $static_flags -Wl,--no-whole-archive
    done
    check "what was linked statically runs" sh -c "'$work/alone-plain' && '$work/alone-static'"
else
    skipped=$((skipped + 5))
fi
# README's loop over batches: the second piece of C there, around which the reader has the rest.
{
    echo '#include <onemodel.h>'
    echo 'void train(om_module *net, om_optim *opt, om_tensor *images, om_tensor *labels);'
    echo 'void train(om_module *net, om_optim *opt, om_tensor *images, om_tensor *labels) {'
    awk '/^```c$/ { n++; inside = 1; next } /^```$/ { inside = 0 } inside && n == 2' "$source/README.md"
    echo '}'
} >"$work/batches.c"
check "README's loop over batches compiles" gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$source/include" -fsyntax-only "$work/batches.c"
check "and is a loop over batches" grep -q OM_BATCHES "$work/batches.c"
# A user's build: a warning of a compiler that we do not know is no error; ours are.
check "a user's build has no -Werror" sh -c "[ \"\$(grep -c -- -Werror '$work/alone/compile_commands.json')\" = 0 ]"
command -v python3 >/dev/null 2>&1 && check "our presets have -Werror" python3 -c '
import json, sys
presets = json.load(open(sys.argv[1]))["configurePresets"]
strict = lambda p: (p.get("cacheVariables", {}).get("OM_WERROR") or next((strict(q) for q in presets if q["name"] == p.get("inherits")), None))
bad = [p["name"] for p in presets if (strict(p) == "ON") != (p["name"] != "demo")]
sys.exit(str(bad) if bad else 0)' "$source/CMakePresets.json"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
