"""What another run uploaded: found by the run that uploaded it, and taken out of its archive within limits.

An archive from a pull request is hostile: it may hold any names, be any size, and unpack to any other.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import gh_api

ARCHIVE_BYTES = 16 * 2**20
FILE_BYTES = 32 * 2**20
"""As much as `quantdrift comment` reads. A run of the default matrix is 4 MB of JSON, and a tenth of that in the archive."""


def find_artifact(repository: str, run: int, name: str) -> dict[str, Any] | None:
    """The newest artifact called `name` of `run` (a run that was repeated has several); None where there is none."""
    answer = gh_api.ask(f"repos/{repository}/actions/runs/{run}/artifacts", name=name, per_page="100")
    kept = [found for found in answer["artifacts"] if found["name"] == name and not found["expired"]]
    return max(kept, key=lambda found: int(found["id"]), default=None)


def read_file(repository: str, artifact: dict[str, Any], name: str) -> bytes:
    """The file `name` at the top of an artifact; nothing else of it is unpacked, and nothing is written.

    Raises Refused for an archive that is too large, damaged, or does not hold exactly one such file.
    """
    told = int(artifact["size_in_bytes"])
    if told > ARCHIVE_BYTES:
        raise gh_api.Refused(f"artifact {artifact['name']}: {told:,} bytes, and at most {ARCHIVE_BYTES:,} are read")
    packed = gh_api.download(f"repos/{repository}/actions/artifacts/{int(artifact['id'])}/zip", limit=ARCHIVE_BYTES)
    try:
        return unpack(packed, name)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as damage:
        raise gh_api.Refused(f"artifact {artifact['name']}: not an archive that can be read: {damage}") from damage


def unpack(packed: bytes, name: str) -> bytes:
    """The bytes of the one file called `name` in a zip archive. What the archive says of its size is not believed."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        if [entry for entry in archive.namelist() if entry == name] != [name]:
            raise gh_api.Refused(f"the archive does not hold exactly one {name}")
        with archive.open(name) as file:
            content = file.read(FILE_BYTES + 1)
    if len(content) > FILE_BYTES:
        raise gh_api.Refused(f"{name} unpacks to more than {FILE_BYTES:,} bytes")
    return content
