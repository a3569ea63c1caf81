#!/usr/bin/env bash
# Appends last night's run to the history, where there was one.
#
#   append_history.sh NIGHTLY HISTORY      the directory with run.json, and the one with history.jsonl
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: append_history.sh NIGHTLY HISTORY" >&2
  exit 2
fi
if [ ! -f "$1/run.json" ]; then
  echo "append_history.sh: $1 has no run.json, so the history stays as it is"
  exit 0
fi
mkdir -p "$2"
"${QUANTDRIFT_PYTHON:-python}" -m suite.cli history "$2/history.jsonl" --append "$1/run.json" ${GITHUB_SHA:+--commit "$GITHUB_SHA"}
