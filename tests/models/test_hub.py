"""The adapter to huggingface_hub, against a hub on the loopback interface that answers as the real one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from suite.errors import Unavailable
from suite.models.hub import HuggingFaceHub, Repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {"config.json": b"{}", "sub/model.gguf": b"weights"}


class Answer(BaseHTTPRequestHandler):
    """``org/name`` exists, ``org/gated`` is gated, ``org/broken`` fails, nothing else is there."""

    requests = 0

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.split("?")[0]
        if path.startswith("/api/models/org/name") and not path.endswith("/nowhere"):
            siblings = [{"rfilename": name} for name in FILES]
            self._send(200, json.dumps({"id": "org/name", "sha": COMMIT, "siblings": siblings}).encode(), with_body)
        elif path.startswith("/api/models/org/name"):
            self._send(404, b"{}", with_body, {"X-Error-Code": "RevisionNotFound"})
        elif path.startswith("/api/models/org/gated"):
            self._send(403, b"{}", with_body, {"X-Error-Code": "GatedRepo"})
        elif path.startswith("/api/models/org/broken"):
            Answer.requests += 1
            self._send(400, b"{}", with_body, {"X-Request-Id": f"Root=1-{Answer.requests}"})
        elif (name := path.replace("/main/", f"/{COMMIT}/").removeprefix(f"/org/name/resolve/{COMMIT}/")) in FILES:
            self._send(200, FILES[name], with_body, {"X-Repo-Commit": COMMIT, "ETag": f'"{len(name)}"'})
        else:
            self._send(404, b"{}", with_body, {"X-Error-Code": "RepoNotFound"})

    def _send(self, status: int, body: bytes, with_body: bool, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if constants.HF_HUB_OFFLINE:
        pytest.skip("HF_HUB_OFFLINE is set: huggingface_hub asks nobody, not even the loopback interface")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


NOWHERE = "http://127.0.0.1:9"
"""Nothing listens on the discard port."""


def test_a_repository_is_listed_at_the_commit_that_its_revision_resolved_to(endpoint: str, tmp_path: Path) -> None:
    found = HuggingFaceHub(cache=tmp_path, endpoint=endpoint).find("org/name", "main")
    expected = Repository(name="org/name", commit=COMMIT, files=("config.json", "sub/model.gguf"), revision="main")
    assert found == expected


def test_files_are_fetched_once_and_found_again_without_the_hub(endpoint: str, tmp_path: Path) -> None:
    hub = HuggingFaceHub(cache=tmp_path, endpoint=endpoint)
    root = hub.fetch(hub.find("org/name", None), ["sub/model.gguf", "config.json"])
    assert (root / "sub/model.gguf").read_bytes() == b"weights"
    assert (root / "config.json").read_bytes() == b"{}"
    offline = HuggingFaceHub(cache=tmp_path, endpoint=NOWHERE)
    for revision in (None, COMMIT):
        cached = offline.find("org/name", revision)
        assert (cached.commit, cached.files, cached.is_whole) == (COMMIT, ("config.json", "sub/model.gguf"), False)
        assert offline.fetch(cached, ["config.json"]) == root
    with pytest.raises(Unavailable, match="at 'v9' cannot be fetched"):
        offline.find("org/name", "v9")


@pytest.mark.parametrize(
    ("repo", "revision", "says"),
    [
        ("org/gated", None, "is gated: accept its terms"),
        ("org/absent", None, "was not found: check the spelling"),
        ("org/name", "nowhere", "at 'nowhere': the repository exists, that revision does not"),
    ],
)
def test_a_refusal_says_what_to_do(endpoint: str, tmp_path: Path, repo: str, revision: str | None, says: str) -> None:
    with pytest.raises(Unavailable, match=says):
        HuggingFaceHub(cache=tmp_path, endpoint=endpoint).find(repo, revision)


def test_the_same_failure_is_told_in_the_same_words(endpoint: str, tmp_path: Path) -> None:
    told = []
    for _ in range(2):
        with pytest.raises(Unavailable, match="hub repository 'org/broken' cannot be fetched") as fault:
            HuggingFaceHub(cache=tmp_path, endpoint=endpoint).find("org/broken", None)
        told.append(str(fault.value))
    assert told[0] == told[1]


def test_no_hub_and_no_copy_is_unavailable_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as told:
        HuggingFaceHub(cache=tmp_path, endpoint=NOWHERE).find("org/name", "v1")
    assert str(told.value).startswith("hub repository 'org/name' at 'v1' cannot be fetched")
    assert "\n" not in str(told.value)


def test_a_file_that_is_not_there_is_unavailable(endpoint: str, tmp_path: Path) -> None:
    hub = HuggingFaceHub(cache=tmp_path, endpoint=endpoint)
    with pytest.raises(Unavailable, match=r"gone\.gguf of hub repository"):
        hub.fetch(hub.find("org/name", None), ["gone.gguf"])


def test_the_offline_switch_is_respected_and_named(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\nfrom suite.models.hub import HuggingFaceHub\n"
        "HuggingFaceHub(cache=Path('.')).find('org/name', None)"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "is not in the local cache and HF_HUB_OFFLINE is set" in ended.stderr
