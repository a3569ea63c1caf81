#!/usr/bin/env bash
# Installs the suite from the checkout that holds this script, with the versions that it pins.
#
#   install.sh [EXTRAS]      e.g. all, or llama-cpp; without: enough to read and render, no torch and no llama.cpp
#
# QUANTDRIFT_PYTHON   the interpreter to install into (default: python)
set -euo pipefail
cd "$(dirname "$0")/../.."
# As in the Makefile: with AMX, llama.cpp dies of an illegal instruction.
export CMAKE_ARGS=${CMAKE_ARGS:--DCMAKE_C_FLAGS=-U__AMX_INT8__ -DCMAKE_CXX_FLAGS=-U__AMX_INT8__}
"${QUANTDRIFT_PYTHON:-python}" -m pip install --quiet -c constraints.txt ".${1:+[$1]}"
