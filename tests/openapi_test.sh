#!/bin/bash
# openapi_test.sh - /openapi.json of a running berthd is valid by the word of openapi-spec-validator.
set -eu

berthd=${BERTH_BUILD:?is the build folder}/src/berthd/berthd
if [ ! -x "$berthd" ]; then
    echo "skip: $berthd is not built"
    exit 77
fi
if ! command -v python3 >/dev/null; then
    echo "skip: there is no python3"
    exit 77
fi

# The validator is kept beside the build; a failed installation is tried anew the next time.
venv=$BERTH_BUILD/openapi-venv
if ! "$venv/bin/python" -c 'import openapi_spec_validator' 2>/dev/null; then
    rm -rf "$venv"
    if ! python3 -m venv "$venv" 2>/dev/null; then
        echo "skip: python3 cannot make a virtual environment (package python3-venv)"
        exit 77
    fi
    if ! timeout 90 "$venv/bin/pip" install --quiet --disable-pip-version-check 'openapi-spec-validator==0.7.1' \
        >"$venv/pip.log" 2>&1; then
        echo "skip: pip cannot install openapi-spec-validator: $(tail -n 1 "$venv/pip.log")"
        exit 77
    fi
fi

work=$(mktemp -d)
daemon=
# shellcheck disable=SC2317 # called by the trap
clean_up() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" || true
    fi
    rm -rf "$work"
}
trap clean_up EXIT
mkfifo "$work/out"
"$berthd" --data "$work/data" --init --listen 127.0.0.1:0 >"$work/out" 2>"$work/log" &
daemon=$!
if ! read -r word url <"$work/out" || [ "$word" != ready ]; then
    cat "$work/log"
    exit 1
fi
"$venv/bin/python" - "$url/openapi.json" <<'END'
import json
import sys
import urllib.request

from openapi_spec_validator import validate

with urllib.request.urlopen(sys.argv[1], timeout=60) as answer:
    assert answer.headers["Content-Type"] == "application/json"
    document = json.load(answer)
validate(document)
assert len(document["paths"]) > 30, len(document["paths"])
print(f"{len(document['paths'])} paths, {len(document['components']['schemas'])} schemas")
END
