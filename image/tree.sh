#!/bin/bash
# tree.sh: lays the testbed out in a folder, as the image and the Debian package have it.
#
#   git archive HEAD | image/tree.sh FOLDER PLACE    FOLDER will be PLACE of the machine on which it runs
#
# The files of the archive without tests, the programs that ./setup.sh has built, and the packages of requirements.lock. No file
# has the path of the checkout: programs are stripped of it and of their build ID, which follows from it.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly NOT_INCLUDED=(fuzz debian conftest.py .ci .github .devcontainer .containerignore .dockerignore .editorconfig .gitignore
    .shellcheckrc)

fail() {
    echo "tree.sh: $*" >&2
    exit 1
}

(($# == 2)) || fail "usage: git archive HEAD | image/tree.sh FOLDER PLACE"
folder=$1 place=$2
[[ -x $here/.build/kernel-tcp/manet-tcp && -x $here/target/release/manet-medium && -x $here/.venv/bin/python ]] ||
    fail "$here: not built; run ./setup.sh"
mkdir -p "$folder/target/release" "$folder/.build/kernel-tcp"
tar -x --no-same-owner -C "$folder" --exclude=tests --anchored "${NOT_INCLUDED[@]/#/--exclude=}"

find "$here/target/release" -maxdepth 1 -type f -name 'manet-*' -perm /111 -exec cp -t "$folder/target/release" {} +
cp "$here/.build/kernel-tcp/manet-tcp" "$folder/.build/kernel-tcp/"
strip --strip-unneeded --remove-section=.note.gnu.build-id "$folder"/target/release/* "$folder/.build/kernel-tcp/manet-tcp" ||
    fail "the programs cannot be stripped of the path of the checkout; apt-get install binutils"

# Without the compiled files of this machine; packages.py leaves out what tests, pages and clusters alone use.
tar -C "$here" --exclude=__pycache__ -c .venv | tar -x --no-same-owner -C "$folder"
grep -lI '^#!.*python' "$folder"/.venv/bin/* | xargs -r sed -i "1s|^#!.*|#!$place/.venv/bin/python|"
sed -i "s|$here/.venv|$place/.venv|" "$folder"/.venv/bin/activate*
sed -i '/^command = /d' "$folder/.venv/pyvenv.cfg"
"$here/.venv/bin/python" "$here/image/packages.py" "$folder"/.venv/lib/python3*/site-packages "$here/requirements.lock" ||
    fail "see above"
