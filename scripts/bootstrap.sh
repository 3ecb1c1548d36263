#!/bin/sh
# Sees to it that what a build needs is there: installs it as root with apt-get, or prints the line that
# does. Found by trying each tool, not by package name. Sourced by ./demo and ./test from the project's
# root:  . scripts/bootstrap.sh; om_bootstrap demo|test
# Nothing here needs more than a POSIX shell.

om_say() { printf '%s\n' "$*"; }

om_try_compiler() {
    printf '#include <stdio.h>\nint main(void) { return 0; }\n' >"$om_tmp/t.c"
    for om_cc in ${CC:-} cc gcc clang; do
        if command -v "$om_cc" >/dev/null 2>&1 &&
            "$om_cc" -std=c11 -o "$om_tmp/t" "$om_tmp/t.c" >/dev/null 2>&1 && "$om_tmp/t"; then
            return 0
        fi
    done
    return 1
}

om_try_cmake() {
    om_v=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    [ -n "$om_v" ] || return 1
    # shellcheck disable=SC2086
    set -- $om_v
    [ "$1" -gt 3 ] || { [ "$1" -eq 3 ] && [ "$2" -ge 18 ]; }
}

om_try_make() { command -v ninja >/dev/null 2>&1 || command -v make >/dev/null 2>&1; }

om_try_cmocka() {
    printf '%s\n' '#include <stdarg.h>' '#include <stddef.h>' '#include <setjmp.h>' '#include <stdint.h>' \
        '#include <cmocka.h>' 'int main(void) { return 0; }' >"$om_tmp/m.c"
    "$om_cc" -o "$om_tmp/m" "$om_tmp/m.c" -lcmocka >/dev/null 2>&1
}

om_try_venv() { python3 -c 'import venv, ensurepip' >/dev/null 2>&1; }

# Sets om_required and om_optional to the packages that are missing.
om_missing() {
    om_required= om_optional=
    om_try_compiler || om_required="$om_required gcc libc6-dev"
    om_try_cmake || om_required="$om_required cmake"
    om_try_make || om_required="$om_required make"
    if [ "$1" = test ]; then
        om_try_cmocka || om_required="$om_required libcmocka-dev"
        om_try_venv || om_optional="$om_optional python3 python3-venv ca-certificates"
    fi
}

om_install_line() {
    om_id=$(sed -n 's/^ID=//p' /etc/os-release 2>/dev/null | tr -d '"')
    case $om_id in
    fedora | rhel | centos) om_say "sudo dnf install gcc cmake make libcmocka-devel python3" ;;
    alpine) om_say "apk add gcc musl-dev cmake make cmocka-dev python3" ;;
    arch) om_say "sudo pacman -S gcc cmake make cmocka python" ;;
    *)
        if [ "$(uname -s)" = Darwin ]; then
            om_say "brew install cmake cmocka python3"
        else
            om_say "sudo apt-get install -y --no-install-recommends$1"
        fi
        ;;
    esac
}

om_apt_try() {
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $1 >"$om_tmp/apt" 2>&1
}

om_apt() {
    om_say "installing what is missing: apt-get install -y --no-install-recommends$1"
    om_apt_try "$1" || { apt-get update -qq >"$om_tmp/apt" 2>&1 && om_apt_try "$1"; }
}

# om_bootstrap demo|test: returns with everything required in place, or exits with 2.
om_bootstrap() {
    om_tmp=$(mktemp -d) || exit 2
    om_missing "$1"
    om_all="$om_required$om_optional"
    if [ -n "$om_all" ] && [ "$(id -u)" = 0 ] && [ -z "${OM_NO_INSTALL:-}" ] &&
        command -v apt-get >/dev/null 2>&1; then
        om_apt "$om_all" || { [ -n "$om_required" ] && [ -n "$om_optional" ] && om_apt "$om_required"; } || :
        om_missing "$1"
    fi
    if [ -n "$om_required" ]; then
        [ -s "$om_tmp/apt" ] && sed 's/^/    /' "$om_tmp/apt"
        om_say "needed to build:$om_required"
        om_say "install it with:"
        om_say "    $(om_install_line "$om_required$om_optional")"
        rm -rf "$om_tmp"
        exit 2
    fi
    rm -rf "$om_tmp"
    if command -v ninja >/dev/null 2>&1; then om_generator=Ninja; else om_generator='Unix Makefiles'; fi
    om_jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
}

# om_build DIR "TARGETS" CMAKE-OPTION...: configures and builds; the log is shown when it fails.
om_build() {
    om_dir=$1 om_targets=$2
    shift 2
    mkdir -p "$om_dir"
    if ! cmake -S . -B "$om_dir" -G "$om_generator" "$@" >"$om_dir/configure.log" 2>&1; then
        tail -n 40 "$om_dir/configure.log"
        return 1
    fi
    # shellcheck disable=SC2086
    if ! cmake --build "$om_dir" -j "$om_jobs" ${om_targets:+--target $om_targets} >"$om_dir/build.log" 2>&1; then
        tail -n 60 "$om_dir/build.log"
        return 1
    fi
}
