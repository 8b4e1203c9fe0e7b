"""Repository on the model hub: its files at one commit, and the copy in the shared cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from responses_app.server.model_files.errors import CannotServe

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

LIST_LIMIT_S = 10.0
DEFAULT_REVISION = "main"


@dataclass(frozen=True, slots=True)
class RepoFile:
    """File of a repository. `sha256` is known for files of the large file storage, `git_id` for the others."""

    path: str
    size: int
    sha256: str | None
    git_id: str

    @property
    def etag(self) -> str:
        """Return the name of the file in the folder `blobs` of the cache."""
        return self.sha256 or self.git_id


@dataclass(frozen=True, slots=True)
class Repository:
    """Repository `name` at `commit`; `base_models` are named by the model card."""

    name: str
    revision: str
    commit: str
    files: tuple[RepoFile, ...]
    base_models: tuple[str, ...] = ()

    @property
    def storage(self) -> Path:
        """Return the folder of the repository in the cache."""
        return storage(self.name)

    @property
    def snapshot(self) -> Path:
        """Return the folder with the files of the commit."""
        return self.storage / "snapshots" / self.commit

    @property
    def advice(self) -> str:
        """Return what to do with files that are damaged on the hub."""
        return f"choose another model, or another revision of {self.name} (NAME@REVISION)"

    def missing(self, files: tuple[RepoFile, ...]) -> tuple[RepoFile, ...]:
        """Return the files that are not in the cache."""
        return tuple(file for file in files if not (self.snapshot / file.path).exists())


def cache() -> Path:
    """Return the cache folder of the hub's library (HF_HUB_CACHE, HF_HOME)."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE).expanduser()


def endpoint() -> str:
    """Return the address of the model hub (HF_ENDPOINT)."""
    from huggingface_hub import constants

    return str(constants.ENDPOINT)


def check_endpoint() -> None:
    """Raise CannotServe for an HF_ENDPOINT that is no address."""
    try:
        parts = urlsplit(endpoint())
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise CannotServe(f"HF_ENDPOINT={endpoint()!r} is no address such as https://huggingface.co: correct it, or unset it.")


def storage(name: str) -> Path:
    """Return the folder of the repository `name` in the cache."""
    return cache() / f"models--{name.replace('/', '--')}"


def cached_names() -> list[str]:
    """Return the names of the models in the cache."""
    return sorted(folder.name.removeprefix("models--").replace("--", "/") for folder in cache().glob("models--*"))


def cached_snapshot(name: str, revision: str) -> Path | None:
    """Return the folder of a revision in the cache, complete or not, without a request."""
    if "--" in name:  # No name of the hub, whose slash is written as -- in the cache.
        return None
    folder = storage(name)
    ref = folder / "refs" / revision
    commit = ref.read_text().strip() if ref.is_file() else revision
    snapshot = folder / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None


def is_offline() -> bool:
    """Return True for HF_HUB_OFFLINE=1."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def go_offline() -> None:
    """Switch the hub's library off, for this process and for the children: all files are there."""
    from huggingface_hub import constants

    os.environ["HF_HUB_OFFLINE"] = "1"
    constants.HF_HUB_OFFLINE = True


def list_repository(name: str, revision: str) -> Repository:
    """List the files of a repository. Raises the exceptions of the hub's library and of httpx2, and CannotServe."""
    check_endpoint()
    from huggingface_hub import HfApi

    api = HfApi()
    info = api.model_info(name, revision=revision, timeout=LIST_LIMIT_S)
    commit = info.sha or revision
    files = tuple(_files(api.list_repo_tree(name, recursive=True, revision=commit)))
    return Repository(name, revision, commit, files, tuple(_base_models(info)))


def record(repository: Repository, paths: list[str]) -> None:
    """Have the hub's library note the commit of the revision and the list of files, for starts without network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    snapshot_download(repository.name, revision=repository.revision, allow_patterns=paths)


def nearest_names(name: str) -> list[str]:
    """Search the hub for models with similar names. Raises the exceptions of the hub's library and of httpx2."""
    from difflib import get_close_matches

    from huggingface_hub import HfApi

    owner, _, model = name.rpartition("/")
    words = model.replace("_", "-").split("-")
    candidates: dict[str, None] = {}
    searches: list[dict[str, Any]] = [{"search": model}, {"search": words[0]}]
    if owner:
        searches = [{"author": owner}, {"author": owner, "search": words[0]}, *searches]
    for search in searches:
        candidates.update(dict.fromkeys(model.id for model in HfApi().list_models(**search, limit=100)))
    lower = {candidate.lower(): candidate for candidate in candidates}
    return [lower[match] for match in get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]


def _files(tree: Any) -> Iterator[RepoFile]:
    from huggingface_hub import RepoFile as ListedFile

    for entry in tree:
        if isinstance(entry, ListedFile):
            lfs = entry.lfs
            yield RepoFile(entry.path, lfs.size if lfs else entry.size, lfs.sha256 if lfs else None, entry.blob_id)


def _base_models(info: ModelInfo) -> list[str]:
    card = info.card_data
    named = card.get("base_model") if card else None
    return [named] if isinstance(named, str) else [str(one) for one in named or ()]
