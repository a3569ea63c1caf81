#!/usr/bin/env bash
# Opens a pull request with the baselines that were measured. Run in the root of the checkout that they were measured from.
#
#   propose.sh MEASURED BASELINES      a directory with the new baselines, and the one (here) that they replace
#
# REASON, ACTOR, RUN_URL   why, who, where
# RUN_ID                   names the branch: baselines/run-RUN_ID
# BASE                     the branch that the pull request is for
# MATRIX                   the matrix file (default: matrix.toml)
# GH_TOKEN                 may write contents and pull requests
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: propose.sh MEASURED BASELINES" >&2
  exit 2
fi
measured=$1 baselines=$2
: "${REASON:?}" "${ACTOR:?}" "${RUN_URL:?}" "${RUN_ID:?}" "${BASE:?}"
python=${QUANTDRIFT_PYTHON:-python}

odd=$(find "$measured" ! -type d ! -name '*.json' ! -name '*.npz' -o -type l)
if [ -n "$odd" ]; then
  echo "propose.sh: these are no baselines, so nothing is proposed:" >&2
  echo "$odd" >&2
  exit 1
fi

rm -rf "$baselines"
mkdir -p "$(dirname "$baselines")"
cp -R "$measured" "$baselines"
git add --all -- "$baselines"
if git diff --cached --quiet; then
  echo "propose.sh: nothing differs from what is accepted, so there is nothing to propose"
  exit 0
fi

branch=baselines/run-$RUN_ID
scratch=$(mktemp -d)
{
  echo "Baselines: $(tr -s '[:space:]' ' ' <<<"$REASON" | cut -c1-60)"
  echo
  echo "$REASON"
  echo
  echo "Asked for by $ACTOR, measured in $RUN_URL"
} >"$scratch/message"
git switch --quiet --create "$branch"
git -c user.name='github-actions[bot]' -c user.email='41898282+github-actions[bot]@users.noreply.github.com' \
  commit --quiet --file "$scratch/message"

{
  echo "Asked for by \`$ACTOR\`, measured in $RUN_URL. The reason given:"
  echo
  tr -d '\r' <<<"$REASON" | sed 's/^/    /'
  echo
  "$python" -m suite.cli diff HEAD~1 HEAD --format markdown --matrix-baselines "$baselines" \
    --matrix-file "${MATRIX:-matrix.toml}"
} >"$scratch/body"
gh auth setup-git
git push --quiet origin "HEAD:refs/heads/$branch"
gh pr create --base "$BASE" --head "$branch" --title "$(head -n 1 "$scratch/message")" --body-file "$scratch/body"
