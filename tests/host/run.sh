#!/bin/sh
# The shared library is loaded by hosts: by dlopen, by Python before and after numpy and torch, and inside a plug-in.
# Cases: ctypes_in_plain_python, ctypes_after_numpy, ctypes_after_torch, and those of load.c.
#   run.sh LOADER LIBRARY PLUGIN
set -u
loader=$1 library=$2 plugin=$3
passed=0 failed=0 skipped=0
verdict() { # verdict NAME COMMAND...
    name=$1
    shift
    if out=$("$@" 2>&1); then
        passed=$((passed + 1))
        echo "[       OK ] $name"
    else
        failed=$((failed + 1))
        echo "[  FAILED  ] $name"
        printf '%s\n' "$out" | tail -n 5
    fi
}
no_static_tls() { readelf -d "$1" >/tmp/tls.$$ && ! grep -q STATIC_TLS /tmp/tls.$$ && rm -f /tmp/tls.$$; }

"$loader" "$library" "$plugin"
[ $? = 0 ] && passed=4 || failed=1
if command -v readelf >/dev/null 2>&1; then
    verdict no_static_thread_storage no_static_tls "$library"
    verdict no_static_thread_storage_in_a_plugin no_static_tls "$plugin"
else
    skipped=$((skipped + 2))
fi
code='
import ctypes, sys
for name in sys.argv[2:]: __import__(name)
om = ctypes.CDLL(sys.argv[1])
om.om_full.restype = om.om_sum.restype = ctypes.c_void_p
om.om_full.argtypes = [ctypes.c_double, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
om.om_sum.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_bool]
om.om_item_f32.restype = ctypes.c_float
om.om_item_f32.argtypes = [ctypes.c_void_p]
x = om.om_full(2.0, 1, 2, (ctypes.c_int64 * 2)(300, 300))
assert om.om_item_f32(om.om_sum(x, 0, None, False)) == 180000.0
'
python=${OM_PYTHON:-python3}
[ -x "$python" ] || python=python3
if command -v "$python" >/dev/null 2>&1; then
    verdict ctypes_in_plain_python "$python" -c "$code" "$library"
    for module in numpy torch; do
        if "$python" -c "import $module" >/dev/null 2>&1; then
            verdict ctypes_after_$module "$python" -c "$code" "$library" $module
        else
            skipped=$((skipped + 1))
            echo "skipped: ctypes_after_$module (this Python has no $module)"
        fi
    done
else
    skipped=$((skipped + 3))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
