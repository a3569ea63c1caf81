#!/usr/bin/env bash
# Builds the wheel, installs it into an environment of its own, and tries it far from this checkout.
#
#   wheel.sh DIRECTORY      which must not exist
set -euo pipefail
if [ $# -ne 1 ]; then
  echo "usage: wheel.sh DIRECTORY" >&2
  exit 2
fi
mkdir "$1"
place=$(cd "$1" && pwd)
scripts=$(cd "$(dirname "$0")" && pwd)
cd "$scripts/../.."

python=${QUANTDRIFT_PYTHON:-python}
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$place/dist" .
"$python" -m venv "$place/env"
"$place/env/bin/python" -m pip install --quiet -c constraints.txt "$place"/dist/quantdrift-*.whl
"$scripts/try_wheel.sh" "$place/env/bin/python" "$place/project"
