#!/bin/bash
# openapi_test.sh - validates /openapi.json of a running berthd with openapi-spec-validator.
# waits: processes
# network: outside
# sanitize: no, one request, which daemon_test makes, too
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd"
needs python3

# The validator is installed beside the build; a failed installation is repeated at the next run.
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

kit_begin
start "$work/data" --init
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
