#!/usr/bin/env bash
# Gets what the tests of the page need: Chromium, on Debian, for root; axe-core, where there is npm.
#
#   get.sh DIRECTORY     axe-core is kept in DIRECTORY/axe-core-VERSION
#
# Says nothing when all is there. What cannot be had is told in one line, and its tests are skipped; in CI they fail.
set -euo pipefail

read -r version digest <"$(dirname "$0")/axe-core.pin"
place=$1/axe-core-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

has_browser() {
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null; then return 0; fi
  done
  return 1
}

install_browser() {
  # Elsewhere the package of this name may be something that only fetches a browser.
  grep -qs '^ID=debian$' /etc/os-release && [ "$(id -u)" = 0 ] || return 1
  echo "== installing Chromium, for the tests of the page"
  export DEBIAN_FRONTEND=noninteractive
  local install=(apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core)
  "${install[@]}" >"$work/log" 2>&1 || { apt-get update -qq && "${install[@]}"; } >"$work/log" 2>&1
}

get_axe() {
  command -v npm >/dev/null || return 1
  echo "== getting axe-core $version, for the tests of the page"
  (cd "$work" && npm pack --silent --no-update-notifier "axe-core@$version" && tar -xzf "axe-core-$version.tgz") >"$work/log" 2>&1 || return 1
  echo "$digest  $work/package/axe.min.js" | sha256sum --check --status || return 1
  mkdir -p "$place"
  mv "$work/package/LICENSE" "$place/"
  mv "$work/package/axe.min.js" "$place/" # last: it says that all is there
}

if ! has_browser && ! install_browser; then
  echo "browser tests will be skipped: Chromium is not installed, and only root on Debian can have it installed here"
fi
if [ ! -f "$place/axe.min.js" ] && ! get_axe; then
  echo "axe-core tests will be skipped: axe-core $version could not be had from npm"
fi
