#!/bin/sh
# Runs ./demo and ./test in a bare Debian 12 (debootstrap, minbase) from a clean checkout, timed by phase.
#   chroot_run.sh [DIR] [demo|test|both]     DIR: where the chroot is made (default: a temporary folder)
set -eu
cd "$(dirname "$0")/.."
what=${2:-both}
if [ -n "${1:-}" ]; then root=$1; else
    root=$(mktemp -d)
    trap 'rm -rf --one-file-system "$root"' EXIT
fi
now() { date +%s; }
t=$(now)
[ -f "$root/etc/debian_version" ] || debootstrap --variant=minbase bookworm "$root" >"$root.log" 2>&1
echo "debootstrap $(($(now) - t)) s (not part of the promise)"
for f in /etc/resolv.conf /etc/hosts; do [ -f $f ] && cp $f "$root$f"; done
[ -d /usr/local/share/ca-certificates ] && mkdir -p "$root/usr/local/share" && cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
for f in /etc/apt/apt.conf.d/99*; do [ -f "$f" ] && cp "$f" "$root/etc/apt/apt.conf.d/"; done
mkdir -p "$root/src" "$root/proc" "$root/dev"
rm -rf "$root/src/onemodel"
mkdir "$root/src/onemodel"
git archive HEAD | tar -x -C "$root/src/onemodel"
mount -t proc proc "$root/proc" 2>/dev/null || :
[ -e "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
trap 'umount "$root/proc" 2>/dev/null || :' EXIT
inside() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 ${OM_CHROOT_ENV:-} sh -c "cd /src/onemodel && $1"; }
if [ "$what" != test ]; then
    t=$(now)
    inside ./demo
    echo "./demo in a bare Debian 12: $(($(now) - t)) s (goal: 120)"
fi
if [ "$what" != demo ]; then
    t=$(now)
    inside ./test
    echo "./test in a bare Debian 12: $(($(now) - t)) s (goal: 600)"
fi
