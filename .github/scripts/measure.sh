#!/usr/bin/env bash
# Measures, and lays the results where the next steps look for them.
#
#   measure.sh DIRECTORY [arguments of pytest...]
#
# DIRECTORY gets run.json, report.md, report.html, results.xml and status, which is pytest's exit status. Within a workflow
# the step's summary and its annotations are written as well. Exits with pytest's status.
#
# QUANTDRIFT_PYTHON   the interpreter of the environment that measures (default: python)
set -euo pipefail

if [ $# -lt 1 ]; then
  echo "usage: measure.sh DIRECTORY [arguments of pytest...]" >&2
  exit 2
fi
directory=$1
shift
python=${QUANTDRIFT_PYTHON:-python}
mkdir -p "$directory"

report() {
  "$python" -m suite.cli report "$directory" --format "$1"
}

# What a model says is printed when a gate fails, and the runner takes a line that starts with "::" for a command: between
# these two lines it does not, since nobody can guess the word that ends the pause.
pause="" resume=""
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  pause="::stop-commands::$word" resume="::$word::"
fi

status=0
if [ -n "$pause" ]; then echo "$pause"; fi
"$python" -m pytest --model-matrix --matrix-report="$directory" --junitxml="$directory/results.xml" "$@" || status=$?
if [ -n "$resume" ]; then echo "$resume"; fi
echo "$status" >"$directory/status"
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  printf 'status=%s\nresults=%s\n' "$status" "$directory" >>"$GITHUB_OUTPUT"
fi

if [ ! -f "$directory/run.json" ]; then
  echo "measure.sh: pytest ended with status $status and wrote no run; its output above says why" >&2
  exit "$((status ? status : 3))" # results lost
fi
if report html >"$directory/page.tmp"; then
  mv "$directory/page.tmp" "$directory/report.html"
else
  rm -f "$directory/page.tmp"
  echo "measure.sh: the page could not be made" >&2
fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  report summary >>"$GITHUB_STEP_SUMMARY" || echo "measure.sh: the summary could not be made" >&2
fi
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  report annotations || echo "measure.sh: the annotations could not be made" >&2
fi
exit "$status"
