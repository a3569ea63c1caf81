#!/usr/bin/env bash
# Tries an installed suite in a project that has nothing to do with this checkout: a scripted model, one case.
#
#   try_wheel.sh PYTHON DIRECTORY      PYTHON has the suite installed; DIRECTORY must not exist
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: try_wheel.sh PYTHON DIRECTORY" >&2
  exit 2
fi
python=$1
checkout=$(cd "$(dirname "$0")/../.." && pwd)
mkdir "$2"
cd "$2"

where=$("$python" -c 'import os, suite; print(os.path.dirname(os.path.abspath(suite.__file__)))')
if [ "$where" = "$checkout/suite" ]; then
  echo "try_wheel.sh: $python imports the suite from the checkout ($where), not from a wheel" >&2
  exit 1
fi

mkdir -p cases/reasoning
cat >cases/reasoning/sky.toml <<'CASE'
[[case]]
id = "sky"
version = 1
prompt = "Which colour has the sky?"
target = "blue"
scorer = "exact"
max_new_tokens = 40
CASE
echo '{"replies": {"colour": "blue"}}' >toy.json
cat >matrix.toml <<'MATRIX'
model = { name = "toy", source = "org/toy" }
scenarios.short = { prompt_tokens = 24, new_tokens = 6 }
protocol = { launches = 3, max_launches = 3, rounds = 2, warmup = 0, retries = 0 }
variants.q4 = { backend = "fake", options = { script = "toy.json" } }
MATRIX

"$python" -m suite.cli --version
"$python" -m pytest --model-matrix -q
"$python" -m suite.cli report --width 120
