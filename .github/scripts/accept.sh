#!/usr/bin/env bash
# Measures, and accepts what was measured as baselines, because a person asked for it and said why.
#
#   accept.sh DIRECTORY {new,changed,all} [arguments of pytest...]
#
# REASON    why; stored in every baseline that is written
# ACTOR     who asked; stored beside it
# RUN_URL   where it was measured; the same
#
# Baselines are never written in CI: no job may re-base a gate on its own account. This job does not. A person dispatched it,
# the files say who, and they reach a branch only through a pull request that is reviewed (propose.sh). So the rule
# is lifted for this one command, and for no event but a dispatch.
#
# Exits with 0 also where some baselines were refused: the pull request shows those that were not, and the log says why.
set -euo pipefail

if [ $# -lt 2 ]; then
  echo "usage: accept.sh DIRECTORY {new,changed,all} [arguments of pytest...]" >&2
  exit 2
fi
directory=$1 mode=$2
shift 2

if [ -n "${GITHUB_ACTIONS:-}" ] && [ "${GITHUB_EVENT_NAME:-}" != workflow_dispatch ]; then
  echo "accept.sh: baselines are accepted when a person dispatches it, never on '${GITHUB_EVENT_NAME:-}'" >&2
  exit 2
fi
reason=$(tr -s '[:space:]' ' ' <<<"${REASON:-}")
reason=${reason# } reason=${reason% }
if [ -z "$reason" ] || [ -z "${ACTOR:-}" ] || [ -z "${RUN_URL:-}" ]; then
  echo "accept.sh: REASON, ACTOR and RUN_URL say why, who and where; all three are stored with the baselines" >&2
  exit 2
fi

status=0
CI=false "$(dirname "$0")/measure.sh" "$directory" "--matrix-update=$mode" \
  "--matrix-reason=$reason (asked for by $ACTOR, $RUN_URL)" "$@" || status=$?
if [ "$status" -gt 1 ]; then
  exit "$status"
fi
echo "accept.sh: pytest ended with status $status (1: a gate failed, or something was refused; see above)"
