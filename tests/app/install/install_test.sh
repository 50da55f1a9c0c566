#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
#   install_test.sh BUILD
#
# Installs the programs into an empty folder and uses them there: what starts at once needs no LibTorch, what computes finds
# the engine and LibTorch, each verb has a page of the manual and a completion, and what is missing is named.
set -euo pipefail

build=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() { printf 'install_test: %s\n' "$*" >&2; exit 1; }

DESTDIR=$place cmake --install "$build" --prefix /usr --component engine >"$place/install.log" 2>&1 ||
    { cat "$place/install.log" >&2; fail "the engine could not be installed."; }
program=$place/usr/bin/ponderscope
model=$place/usr/share/ponderscope/sample_models/ponderlm-neox-1m

libraries=$(LD_TRACE_LOADED_OBJECTS=1 "$program")
case $libraries in *torch* | *Qt6*) fail "ponderscope itself is linked with LibTorch or Qt: $libraries" ;; esac
if readelf -d "$place/usr/lib/ponderscope/ponderscope-engine" | grep -E 'RUNPATH|RPATH' | grep -qF "$build"; then
    fail "the installed engine looks for libraries in $build."
fi

verbs=$("$program" --help | sed -n '/^Verbs:/,$s/^  \([a-z]\+\) .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 20 ] || fail "--help names these verbs only: $verbs"
for verb in $verbs; do
    page=$place/usr/share/man/man1/ponderscope-$verb.1
    grep -q '^\.SH SYNOPSIS' "$page" && grep -q '^\.SH OPTIONS' "$page" || fail "the manual has no page for $verb."
    grep -q "^        $verb) words='.*--help" "$place/usr/share/bash-completion/completions/ponderscope" ||
        fail "there is no completion for $verb."
done

for name in $(sed -n 's/.*resources\/docs\/\([a-z\\-]*\.md\).*/\1/p' "$place"/usr/share/man/man1/*); do
    [ -f "$place/usr/share/doc/ponderscope/${name//\\/}" ] || fail "the manual names $name, which is not installed."
done
grep -q 'on the other machine' "$place/usr/share/man/man1/ponderscope-serve.1" ||
    fail "the manual does not say where the example of serve is typed."
grep -qF 'installed in share/doc/ponderscope' "$place/usr/share/man/man1/ponderscope-train.1" ||
    fail "the manual does not say where the pages are."

(cd "$place" && "$program" record "$model" --prompt "The lamp was lit" -o here.ponder --progress none >/dev/null) ||
    fail "the installed program does not record."
"$program" stats "$place/here.ponder" >/dev/null || fail "the installed program does not read what it recorded."

mv "$place/usr/lib/ponderscope/ponderscope-engine" "$place/"
code=0
said=$("$program" record "$model" --prompt "The lamp was lit" -o "$place/there.ponder" 2>&1) || code=$?
[ "$code" -eq 2 ] || fail "without an engine the exit code is $code: $said"
case $said in *ponderscope-engine*install*) ;; *) fail "without an engine it says: $said" ;; esac
"$program" stats "$place/here.ponder" >/dev/null || fail "a trace cannot be read without the engine."

# The wheel carries the programs and what they need beside LibTorch and the C++ runtime.
"$(dirname "$(readlink -f "$0")")/../../../resources/build/package.sh" "$build" "$place/packages" wheel >"$place/wheel.log" 2>&1 ||
    { cat "$place/wheel.log" >&2; fail "the wheel could not be made."; }
python3 -m pip install --disable-pip-version-check -q --target "$place/site" "$place"/packages/*.whl || fail "pip refuses the wheel."
export PYTHONPATH=$place/site
(cd "$place" && "$place/site/bin/ponderscope" record "$model" --prompt "The lamp was lit" -o wheel.ponder --progress none >/dev/null) ||
    fail "the program of the wheel does not record."
found=$(python3 -c 'from importlib.util import find_spec; import os; print(os.path.dirname(find_spec("ponderscope").origin))')
for name in "$found"/program/bin/*; do
    libraries=$(ldd "$name" | grep -vE 'lib(c|m|gcc_s|stdc\+\+|gomp|pthread|dl|rt|util)\.so|linux-vdso|ld-linux|/(torch|nvidia)/' |
        grep -vF "$found/program/bin/../lib/" || true)
    [ -z "$libraries" ] || fail "$(basename "$name") of the wheel needs libraries of this machine: $libraries"
done
