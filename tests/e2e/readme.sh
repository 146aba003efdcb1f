#!/bin/bash
# A new user's walk through README, docs/ and the chapters: runs the commands they show, one after the other, in one
# shell, and looks for the output that they show. readme.sh SOURCE-ROOT [FILE...]; PORT replaces 9090, PATIENCE
# is in tenths of a second.
# Nothing outside of a scratch directory changes: it has links to the tree, and is HOME as well.
set -euo pipefail

root=$(cd "$1" && pwd)
shift
cd "$root"
[ $# -gt 0 ] || set -- README.md docs/*.md */README.md
port=${PORT:?}
place=$(mktemp -d)
server=
started=()

finish() {
    local code=$? pid
    [ -z "$server" ] || kill -- -"$server" 2>/dev/null || true
    for pid in "${started[@]}" $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$place"
    [ $code = 0 ] || echo "FAIL line $line of $file: $command"
    exit $code
}
file=README.md line=0 command=
trap finish EXIT

# Every block of code of a text as a file of its own, named after its line.
cut_into_blocks() {
    rm -rf "$place/blocks"
    mkdir "$place/blocks"
    awk -v place="$place/blocks" '
        function save() {
            if (inside) { printf "%s", text >sprintf("%s/%05d", place, start) }
            text = ""; inside = blank = held = 0
        }
        /^    / && (blank || inside) { if (!inside) { start = NR; indent = match($0, /[^ ]/) }
                                       for (; held > 0; held--) text = text "\n"
                                       text = text substr($0, indent) "\n"; inside = 1; next }
        /^$/                         { blank = 1; if (inside) held++; next }
        { save() }
        END { save() }
    ' "$1"
}

# Commands that cannot run here, and the test that does it instead.
reason_not_to() {
    case $1 in
    'make test'*) echo "runs this walk itself" ;;
    'make deb'* | 'apt '* | 'apt-get '* | 'sudo '* | 'systemctl '*) echo "would change this machine" ;;
    'man '*) echo "needs the installed package; test_man.py reads the pages" ;;
    'docker compose'*) echo "needs images from elsewhere; test_compose.py looks at the file" ;;
    'docker run'*nvidia*) echo "needs NVIDIA's runtime; test_image.py runs the same without" ;;
    'docker '*) echo "needs a Docker of its own; test_image.py has one" ;;
    'kubectl '*) echo "needs a cluster; test_kubernetes.py does without" ;;
    'waap model '*) echo "needs half a gigabyte of weights; test_model.py makes smaller models" ;;
    'build/exporter/waap run '*) echo "takes half a minute and a terminal; test_run.py runs it" ;;
    'waap compare '*) echo "needs two runs; test_compare.py has them" ;;
    'waap place --'* | *localhost:7001*) echo "needs a Prometheus that knows nodes; test_place.py has one" ;;
    *JENKINS_URL*) echo "needs a Jenkins; test_jenkins.py looks at what it gets" ;;
    'waap place train '*) echo "needs what somebody measured; test_train.py has that" ;;
    'waap place import '*) echo "needs a model made elsewhere; test_import.py makes some" ;;
    'xdg-open '*) echo "needs somebody to look at it; test_live_page.py has a browser" ;;
    *) return 1 ;;
    esac
}

await() {
    local i what=$1
    shift
    for ((i = 0; i < ${PATIENCE:-300}; i++)); do
        "$@" && return
        sleep 0.1
    done
    echo "$what: not to be seen"
    return 1
}

ready() {
    curl -so /dev/null "localhost:$port/-/ready" 2>/dev/null
}

# `make run` stays in the foreground of another shell.
serve() {
    if [ -n "$server" ]; then
        kill -- -"$server"
        wait "$server" || true
    fi
    setsid bash -c "$1" >"$place/serve.log" 2>&1 &
    server=$!
    await "$1" ready || { cat "$place/serve.log"; return 1; }
}

run() {
    local reason
    command=$1
    if reason=$(reason_not_to "$1"); then
        echo "skip  $1: $reason"
        return
    fi
    echo "run   $1"
    case $1 in
    'make run'*) serve "$1" ;;
    *) eval "${1//localhost:9090/localhost:$port}" ;;
    esac
}

# A line, or a series whatever its value.
is_shown() {
    local expected
    while IFS= read -r expected; do
        grep -qF -- "$expected" "$place/output" || grep -qF -- "${expected% *} " "$place/output" || return 1
    done <"$place/expected"
}

look() {
    { eval "${1//localhost:9090/localhost:$port}" >"$place/output" 2>&1 || true; } && is_shown
}

# `$ command`, and what it prints, which may take it a moment.
session_step() {
    if [ ! -s "$place/expected" ] || reason_not_to "$1" >/dev/null; then
        run "$1"
        return
    fi
    command=$1
    echo "look  $1"
    await "what $file shows" look "$1" || { cat "$place/output"; return 1; }
}

# Whether a command goes on in the next line: by a backslash, or within quotes.
goes_on() {
    [[ $1 == *\\ ]] || ! bash -n <<<"$1" 2>/dev/null
}

session() {
    local step='' text
    : >"$place/expected"
    while IFS= read -r text; do
        if [[ $text == '$ '* ]]; then
            [ -z "$step" ] || session_step "$step"
            step=${text#'$ '}
            : >"$place/expected"
        elif [ ! -s "$place/expected" ] && goes_on "$step"; then
            step+=$'\n'$text
        else
            echo "$text" >>"$place/expected"
        fi
    done <"$1"
    session_step "$step"
}

# Commands, each on a line or on several that end in a backslash.
shell() {
    local text
    while read -r text; do
        [ -z "$text" ] || run "$text"
    done < <(sed -e ':again' -e '/\\$/ { N; s/\\\n */ /; b again' -e '}' -e 's/ \+# .*//' "$1")
}

# What the sources leave to their reader.
camera_py='import time
def grab(lines): time.sleep(0.01)
def detect(image): return ["car"]
'
camera_c='#include <stdlib.h>
#include <unistd.h>
struct image { long lines; };
static struct image *grab(long lines) { static struct image one; one.lines = lines; usleep(10000); return &one; }
static double detect(const struct image *image) { return image->lines > 0; }
'

has_frames() {
    curl -s "localhost:$port/metrics" | grep -q "^fps_total{plugin=\"$1\"} [1-9]"
}

# Runs a tutorial's program until its frames are counted.
try_plugin() {
    local name=$1
    shift
    command="$*"
    echo "run   $*"
    WAAP_PLUGIN_NAME=$name "$@" &
    started+=($!)
    await "frames of $name" has_frames "$name"
    kill "${started[-1]}"
}

# The kind of a block by its first line; a block of unknown kind is an error.
kind_of() {
    local first
    IFS= read -r first <"$1"
    case $first in
    '$ '*) echo session ;;
    '# objcounter.py') echo python ;;
    'with plugin.timeit('* | 'from waggle import'* | 'label_replace('* | 'pipeline = joblib.'* | 'schedule('*) echo text ;;
    '/* objcounter.c */') echo c ;;
    'make '* | 'curl '* | 'docker '* | 'kubectl '* | 'export '* | 'cc '* | 'echo '* | 'xdg-open '*) echo shell ;;
    'apt '* | 'sudo '* | 'systemctl '*) echo shell ;;
    'ts='* | '# '* | '→ '* | 'sources '* | 'return '*) echo text ;;
    *)
        [[ $first =~ ^[a-zA-Z_]+:( |$) ]] || { echo "what is this: $first" >&2; return 1; }
        echo text # YAML
        ;;
    esac
}

try() {
    line=$((10#${1##*/}))
    case $(kind_of "$1") in
    session) session "$1" ;;
    shell)
        shell "$1"
        [ "$(head -c 3 "$1")" != 'cc ' ] || try_plugin tutorial-c ./objcounter
        ;;
    python)
        { echo "$camera_py"; cat "$1"; } >objcounter.py
        try_plugin tutorial-python python3 objcounter.py
        ;;
    c) { echo "$camera_c"; cat "$1"; } >objcounter.c ;;
    text) ;;
    *) exit 1 ;;
    esac
}

walk() {
    local block
    file=$1
    echo "walk  $file"
    cut_into_blocks "$root/$file"
    for block in "$place"/blocks/*; do
        [ ! -e "$block" ] || try "$block"
    done
}

mkdir "$place/home" "$place/tree"
cd "$place/tree"
ln -s "$root"/* "$root/.ci" .
printf 'web:\n\n  max_requests: many\n  listen_adress: here\n' >waap.yaml
printf 'fail\nshow-error\nsilent\n' >"$place/home/.curlrc"
DESTDIR=$place/installed meson install -C build --no-rebuild >/dev/null
export HOME=$place/home PATH=$root/build/exporter:$PATH LD_LIBRARY_PATH=$place/installed/usr/local/lib
export PKG_CONFIG_SYSROOT_DIR=$place/installed
PKG_CONFIG_PATH=$(dirname "$(find "$place/installed" -name waap-plugin.pc)")
export PKG_CONFIG_PATH WAAP_WEB_LISTEN_ADDRESS=127.0.0.1:$port WAAP_PUSH_SOCKET=$place/push.sock WAAP_PUSH_TABLE=$place/push.table

for text in "$@"; do
    walk "$text"
done
echo "README does what it says"
