#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A method is two files and one line: builds the program from a copy of this tree to which the example of
# resources/adding-a-method.md was added under a name of its own, and nothing else. The example computes what
# ponderlm_hidden does, so both must give the same logits, digit by digit. Takes some minutes.
#   PONDERSCOPE_DEPS=... tests/core/ponder/two_files_one_line.sh
set -eu
tree=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/ponderscope-method-XXXXXX")
trap 'rm -rf "$work"' EXIT
copy=$work/tree
mkdir "$copy"
(cd "$tree" && git ls-files -z | tar --null -T - -cf -) | tar -xf - -C "$copy"
cd "$copy"
git init -q . && git add -A && git -c user.name=t -c user.email=t@localhost commit -qm before

block() { # NUMBER: that block of C++ of the page, under the example's name
    awk -v wanted="$1" '/^```cpp/ { inside = ++count == wanted; next } /^```/ { inside = 0 } inside' resources/adding-a-method.md |
        sed -e 's/ponderlm_hidden/example/g' -e 's/PonderLmHidden/Example/g'
}
block 1 > core/checkpoint/methods/example_info.cpp
block 2 > core/ponder/methods/example.cpp
grep -q 'MethodInfo example_info()' core/checkpoint/methods/example_info.cpp
grep -q 'MethodEntry example_method()' core/ponder/methods/example.cpp
echo 'PONDERSCOPE_METHOD(example)' >> core/checkpoint/methods/methods.def
git add -A && git diff --cached --stat

cmake -Wno-dev --preset release -DPONDERSCOPE_DESKTOP=OFF -DPONDERSCOPE_TESTS=OFF > "$work/configure.log" 2>&1 ||
    { tail -20 "$work/configure.log"; exit 1; }
ninja -C build/release ${NINJA_JOBS:+-j$NINJA_JOBS} ponderscope > "$work/build.log" 2>&1 ||
    { tail -40 "$work/build.log"; exit 1; }
program=$copy/build/release/bin/ponderscope

# The sample's weights; only the config says how they ponder.
printf '%s' '[[5, 9, 200, 17, 33, 1024, 7, 5, 5, 801]]' > "$work/ids.json"
for method in example ponderlm_hidden vanilla; do
    cp -rL sample_models/vanilla-neox-1m "$work/$method"
    python3 - "$work/$method/config.json" "$method" <<'PYTHON'
import json, sys
path, method = sys.argv[1:]
config = json.load(open(path))
config["pondering"] = {"method": method, "max_steps": 2} if method != "vanilla" else {"method": method}
json.dump(config, open(path, "w"))
PYTHON
    "$program" logits "$work/$method" --ids "$work/ids.json" -o "$work/$method.safetensors" > /dev/null
done
"$program" inspect --help | grep 'example: '
"$program" record --help | grep -q ' example'
"$program" record "$work/example" --text sample_models/texts/passage.txt --record steps -o "$work/t.ponder" > /dev/null
"$program" policy "$work/t.ponder" --policy fixed:n=1 --rerun "$work/example" --replicates 100 > /dev/null
python3 - "$work" <<'PYTHON'
import json, struct, sys
def tensors(name):  # the header names the method
    content = open(f"{sys.argv[1]}/{name}.safetensors", "rb").read()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    return header, content[8 + length:]
example, hidden, vanilla = map(tensors, ("example", "ponderlm_hidden", "vanilla"))
if example != hidden or example[1][:4096] == vanilla[1][:4096]:
    sys.exit("the added method does not compute what ponderlm_hidden does, or nothing at all")
PYTHON
if printf '{"pondering": {"method": "nothing"}}' > "$work/example/config.json" &&
    "$program" inspect "$work/example" > /dev/null 2>&1; then
    echo "a config that names no method was read" && exit 1
fi
echo "two files and one line: built, recorded, rerun; logits equal to those of ponderlm_hidden"
