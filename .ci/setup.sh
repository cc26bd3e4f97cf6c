#!/bin/sh
# Sets up what the demo, the tests or the linters need; the second time it does nothing.
#
#   sh .ci/setup.sh demo | test | lint
#
# Python lives in .venv, which sees the system's modules where they suffice and else holds its own
# from PyPI; R's packages go to the user's R library. What apt, pip and R say goes to a log.
# PYTHON=... names an interpreter to build .venv on.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
root=$(pwd -P)
scope=${1:-demo}
stamps=.setup-stamps
log=$stamps/setup.log
list=.ci/python-packages.txt
python=$root/.venv/bin/python

case $scope in
demo) parts='demo' extras='r,plot' ;;
test) parts='demo test' extras='r,plot,test' ;;
lint) parts='demo lint' extras='r,plot,lint' ;;
*) echo "setup: no such part: $scope (demo, test or lint)" >&2 && exit 2 ;;
esac

say() { printf 'setup: %s\n' "$*"; }
complain() { printf 'setup: %s\n' "$*" >&2; }
logged() { { printf '\n$ %s\n' "$*" && "$@"; } >>"$log" 2>&1 </dev/null; }

# --- what is wanted, what is there ------------------------------------------------------------

# wanted NEED...: the modules of this scope with such a need
wanted() {
    awk -v parts=" $parts " -v needs=" $* " '
        !/^#/ && NF == 4 && index(parts, " " $1 " ") && index(needs, " " $2 " ") { print $3 }' "$list"
}

# missing PYTHON NEED...: the modules that this interpreter does not find; all, if it does not run
missing() {
    interpreter=$1
    shift
    modules=$(wanted "$@" | tr '\n' ' ')
    (cd / && "$interpreter" -c '
import importlib.util, sys
if sys.version_info < (3, 10):
    sys.exit("too old")
print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name) is None])' $modules) \
        2>>"$log" || printf '%s' "$modules"
}

packages_of() {  # MODULE...: Debian's packages of these modules
    for module in "$@"; do
        awk -v module="$module" '!/^#/ && $3 == module { print $4; exit }' "$list"
    done
}

# The interpreters to try. Another python3 may come before Debian's and see none of its packages.
candidates() { printf '%s\n' ${PYTHON:-} python3 /usr/bin/python3 | awk '!seen[$0]++'; }

imports_us() {
    (cd / && "$python" -c '
import importlib.util, os, sys
spec = importlib.util.find_spec("pybridge")
found = spec is not None and os.path.dirname(os.path.dirname(spec.origin))
sys.exit(not found or os.path.realpath(found) != sys.argv[1])' "$root") 2>>"$log"
}

# --- the Python side --------------------------------------------------------------------------

share_system() {  # PYTHON: .venv over that interpreter's own modules
    logged "$1" -m venv --clear --without-pip --system-site-packages .venv
}

# A working copy of pybridge in .venv, by pip where pip and the build back end are there; else the
# one line that pip would have written.
link_us() {
    imports_us && return 0
    logged "$python" -m pip install --quiet --no-build-isolation --no-index --no-deps -e . && imports_us && return 0
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$root" >"$site/pybridge.pth"
    imports_us || { complain "cannot make .venv see pybridge; the log: $log" && exit 1; }
}

# from_what_is_there NEED...: the modules sit where .venv sees them, or an interpreter sees them
# that .venv can be built on.
from_what_is_there() {
    if [ -x "$python" ] && [ -z "$(missing "$python" "$@")" ]; then
        return 0
    fi
    owned_by_user && return 1
    for candidate in $(candidates); do
        command -v "$candidate" >/dev/null 2>&1 || continue
        [ -z "$(missing "$candidate" "$@")" ] || continue
        say "Python: .venv over the modules of $(command -v "$candidate")"
        # In a virtual environment the modules may be its own, and not be seen from .venv.
        share_system "$candidate" && [ -z "$(missing "$python" "$@")" ] && return 0
    done
    return 1
}

# A .venv that does not look at the system's modules is the user's, or holds PyPI's: never rebuilt.
owned_by_user() {
    [ -x "$python" ] && ! grep -qi '^include-system-site-packages *= *true' .venv/pyvenv.cfg
}

# Root, or a sudo that does not ask.
may_be_root() { [ "$(id -u)" = 0 ] || sudo -n true >/dev/null 2>&1; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

apt_install() {
    logged as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
        install -y -q --no-install-recommends "$@"
}

from_debian() {
    command -v apt-get >/dev/null 2>&1 || return 1
    may_be_root || return 1
    owned_by_user && return 1
    [ ! -x /usr/bin/python3 ] || new_enough /usr/bin/python3 || return 1
    lacking=$(packages_of $(missing /usr/bin/python3 must may link))
    say "Python: $(echo $lacking | wc -w) packages from Debian ($(echo $lacking))"
    # The lists of packages are fetched only where they are absent or too old to serve.
    apt_install $lacking || { logged as_root apt-get update -q && apt_install $lacking; } || return 1
    from_what_is_there must may
}

from_pypi() {
    ours=no
    if [ ! -x "$python" ] || ! owned_by_user; then
        ours=yes
        for candidate in $(candidates); do
            new_enough "$candidate" && logged "$candidate" -m venv --clear .venv && break
        done
        [ -x "$python" ] || return 1
    fi
    say "Python: pip install -e '.[$extras]'"
    # Without R's headers rpy2 may not build; the native engines run without it.
    pip_install "$extras" || { grep -q rpy2 "$log" && pip_install "${extras#r,}"; } || {
        [ $ours = no ] || rm -rf .venv
        return 1
    }
    lacking=$(missing "$python" must may)
    [ -z "$lacking" ] || { say_what_is_missing "without" $lacking; complete=no; }
}

new_enough() { (cd / && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))') 2>>"$log"; }

pip_install() {  # EXTRAS
    logged "$python" -m pip install --quiet --retries 1 -e ".[$1]" && [ -z "$(missing "$python" must)" ]
}

say_what_is_missing() {  # WORDS MODULE...
    words=$1
    shift
    complain "$words: $*"
    complain "  on Debian:  apt-get install $(echo $(packages_of "$@"))   (as root, then run this again)"
    complain "  elsewhere:  python3 -m venv .venv && .venv/bin/python -m pip install -e '.[$extras]'"
    [ "$scope" = lint ] || complain "  for R:      $(r_packages)"
    complain "  the log:    $log"
}

set_up_python() {
    if from_what_is_there must may || from_debian || from_pypi; then
        link_us
    elif from_what_is_there must; then
        complete=no
        say_what_is_missing "going on without some Python modules" $(missing "$python" must may)
        link_us
    else
        say_what_is_missing "Python modules are missing" $(missing /usr/bin/python3 must may link)
        exit 1
    fi
}

# --- the R side -------------------------------------------------------------------------------

r_packages() {  # one line that names them, for who has to install them by hand
    awk -F , -v scope="$scope" 'NR > 1 && (scope == "test" || $5 == "demo") {
        if ($3 != "") debian = debian " " $3; else cran = cran " " $1 }
        END { print "apt-get install" debian "; from CRAN:" cran }' pybridge/r/packages.csv
}

set_up_r() {
    case $scope in demo) r_scope=demo ;; test) r_scope=all ;; *) return 0 ;; esac
    if ! command -v R >/dev/null 2>&1; then
        complain "R is not on PATH; on Debian: apt-get install r-base-core r-recommended r-base-dev"
        complete=no
        return 0
    fi
    "$python" -m pybridge.r.setup --scope "$r_scope" || complete=no
}

# --- once -------------------------------------------------------------------------------------

key() {  # changes with the lists, the interpreter, R, and the place of this checkout
    {
        cat .ci/setup.sh "$list" pyproject.toml pybridge/r/packages.csv
        printf '%s\n' "$root"
        ls -l "$(readlink -f "$python")" "$(R RHOME 2>/dev/null)/bin/exec/R" 2>/dev/null || true
    } | cksum
}

stamp=$stamps/$scope
if [ -x "$python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(key)" ]; then
    exit 0
fi
mkdir -p "$stamps"
date >"$log"
complete=yes
set_up_python
set_up_r
if [ $complete = yes ]; then
    key >"$stamp"
    # The tests' part holds the demo's.
    [ $scope != test ] || key >$stamps/demo
fi
