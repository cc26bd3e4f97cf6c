#!/bin/sh
# Runs every script of a folder in turn, all of them even when one fails:
#   sh .ci/each.sh PYTHON FOLDER PATTERN     (names that begin with _ are helpers, not scripts)
set -u
python=$1 folder=$2 pattern=$3
status=0
for script in "$folder"/$pattern; do
    case $(basename "$script") in _*) continue ;; esac
    [ -f "$script" ] || { echo "nothing in $folder yet"; continue; }
    OPENBLAS_NUM_THREADS=1 "$python" "$script" || { echo "$script failed" >&2; status=1; }
done
exit $status
