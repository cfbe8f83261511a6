# What the Python tests stand on: their tools, and a server of their own. Sourced by
# scripts/test-python and scripts/fuzz-api, which have `root` and `scratch` set.
# shellcheck shell=bash

# The tools, in exact versions, in a directory that stays until one of them changes.
python_ready() {
    local stamp
    stamp=$(cat "$root/tests/python/requirements.txt" "$root/clients/python/pyproject.toml" \
        <(python3 --version) | sha256sum)
    venv=$root/${CARGO_TARGET_DIR:-target}/python
    [[ ${CARGO_TARGET_DIR:-} == /* ]] && venv=$CARGO_TARGET_DIR/python
    if [[ $(cat "$venv/stamp" 2>/dev/null) != "$stamp" ]]; then
        rm -rf "$venv"
        if ! python3 -m venv "$venv"; then
            printf 'python3 cannot make environments: apt-get install python3-venv\n' >&2
            return 1
        fi
        local pip=("$venv/bin/pip" --quiet --disable-pip-version-check install --no-deps)
        "${pip[@]}" --requirement "$root/tests/python/requirements.txt"
        "${pip[@]}" --no-build-isolation --editable "$root/clients/python"
        "$venv/bin/pip" --quiet --disable-pip-version-check check
        printf '%s' "$stamp" >"$venv/stamp"
    fi
    # Nothing is written beside the sources.
    export PYTHONDONTWRITEBYTECODE=1
}

# Starts `$1 serve` on a free port with small limits; sets `server` (its pid), `url` and `admin`.
# The rest of the arguments are passed on; `more_config` is added to the configuration.
server_up() {
    local binary=$1 deadline
    shift
    state=${memory:-$scratch}/state
    log=$scratch/server.log
    (umask 077 && cat >"$scratch/config.toml") <<'TOML'
[settings]
timeout = "30s"
cpu_time = "30s"
memory = "512M"
pids = 64
disk = "16M"
files = 1000
stdout = "64K"
stderr = "64K"
artifacts = "1M"
TOML
    printf '%s\n' "${more_config:-}" >>"$scratch/config.toml"
    env -u GLOVEBOX_SERVER -u GLOVEBOX_TOKEN "$binary" serve --config "$scratch/config.toml" \
        --listen 127.0.0.1:0 --state-dir "$state" "$@" 2>"$log" &
    server=$!
    deadline=$((SECONDS + 90))
    until url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$log" | head -n 1) && [[ -n $url ]]; do
        if ! kill -0 "$server" 2>/dev/null || ((SECONDS >= deadline)); then
            printf 'the server did not come up:\n' >&2
            cat "$log" >&2
            return 1
        fi
        sleep 0.05
    done
    admin=$(<"$state/token")
}

# Asks the server to end, and makes it end.
server_down() {
    local deadline=$((SECONDS + 90))
    [[ -n ${server:-} ]] || return 0
    kill -TERM "$server" 2>/dev/null || true
    while kill -0 "$server" 2>/dev/null; do
        if ((SECONDS >= deadline)); then
            kill -KILL "$server" 2>/dev/null || true
        fi
        sleep 0.05
    done
    wait "$server" 2>/dev/null || true
    server=
}

# A new token: role, space, name. Prints the secret.
token() {
    "$venv/bin/python" - "$url" "$admin" "$@" <<'PYTHON'
import sys
from glovebox import Glovebox
url, admin, role, space, name = sys.argv[1:]
with Glovebox(url, admin) as gb:
    print(gb.tokens.create(name, role, space_id=space).secret)
PYTHON
}
