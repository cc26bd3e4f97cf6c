#!/bin/sh
# Runs every plain R script of r_reference/ (each writes golden/*.csv and its rows of MANIFEST).
#
#   sh .ci/golden.sh write           in place
#   sh .ci/golden.sh check PYTHON    in a copy, then compares the copy with what is kept
#
# ONLY=survey.R in the environment runs, and compares, one script's answers.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."

run_scripts() {  # FOLDER
    for script in "$1"/*.R; do
        name=$(basename "$script")
        case $name in install.R | _*) continue ;; esac
        [ -z "${ONLY:-}" ] || [ "$name" = "$ONLY" ] || continue
        echo "r_reference/$name"
        (cd "$1" && Rscript "$name" >"$log" 2>&1 </dev/null) || { cat "$log" >&2; exit 1; }
    done
}

if [ -n "${ONLY:-}" ] && [ ! -f "r_reference/$ONLY" ]; then
    echo "golden: there is no script r_reference/$ONLY; ONLY is one of" >&2
    (cd r_reference && ls ./*.R) | sed 's|^\./||; /^_/d; /^install.R$/d' >&2
    exit 2
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/log
case ${1:-} in
write) run_scripts r_reference ;;
check)
    # Answers are not copied: one that a script no longer writes must be noticed as missing.
    mkdir -p "$folder/copy/golden"
    cp r_reference/*.* "$folder/copy/"
    [ ! -d r_reference/golden/inputs ] || cp -r r_reference/golden/inputs "$folder/copy/golden/"
    run_scripts "$folder/copy"
    "$2" .ci/golden_drift.py r_reference "$folder/copy" ${ONLY:-}
    ;;
*) sed -n 2,8p "$0" && exit 2 ;;
esac
