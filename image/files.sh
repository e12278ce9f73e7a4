#!/bin/sh
# files.sh: the files of this tree for image/tree.sh, each ended by a NUL: those of git, with their changes, or those of an
# unpacked archive without build outputs.
#
#   image/files.sh | tar --null --verbatim-files-from -T - -c | image/tree.sh FOLDER PLACE
set -eu
cd "$(dirname "$0")/.."
if [ -e .git ]; then
    exec git -c safe.directory='*' ls-files -z
fi
exec find . -mindepth 1 \( -path ./target -o -path ./.build -o -path ./.venv -o -path ./results -o -path ./debian \
    -o -name __pycache__ \) -prune -o ! -type d -printf '%P\0'
