"""Repository on the model hub: its files at one commit, and the copy in the shared cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache as cache_result
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.retries import Retries

if TYPE_CHECKING:
    import httpx2
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
        """Return the remedy for files that are damaged on the hub."""
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


@cache_result
def keep_token() -> None:
    """Have the hub's library send the token to the hub alone: a list may name any host for its next page."""
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    def drop_token(request: httpx2.Request) -> None:
        if urlsplit(str(request.url))[:2] != urlsplit(endpoint())[:2]:
            request.headers.pop("Authorization", None)

    def create() -> httpx2.Client:
        client = default_client_factory()
        hooks = client.event_hooks
        client.event_hooks = {**hooks, "request": [*hooks["request"], drop_token]}
        return client

    set_client_factory(create)


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


def list_repository(name: str, revision: str, note: Callable[[str], object] = lambda _: None) -> Repository:
    """List the files of a repository; `note` gets the pauses. Raises the exceptions of the hub's library and of httpx2, and CannotServe."""
    check_endpoint()
    keep_token()
    from huggingface_hub import HfApi

    retries = Retries(note)
    info = retries.call(lambda: HfApi().model_info(name, revision=revision, timeout=LIST_LIMIT_S))
    commit = info.sha or revision
    return Repository(name, revision, commit, tuple(_files(name, commit, retries)), tuple(_base_models(info)))


def record(repository: Repository, paths: list[str], retries: Retries) -> None:
    """Have the hub's library note the commit of the revision and the list of files, for starts without network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    retries.call(lambda: snapshot_download(repository.name, revision=repository.revision, allow_patterns=paths))


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


def _files(name: str, commit: str, retries: Retries) -> Iterator[RepoFile]:
    """Yield the files of a commit, page by page."""
    url: str | None = f"{endpoint()}/api/models/{name}/tree/{commit}?recursive=true"
    while url:
        page = retries.call(partial(_get, url))
        for entry in page.json():
            if entry["type"] == "file":
                lfs = entry.get("lfs")
                yield RepoFile(entry["path"], (lfs or entry)["size"], lfs["oid"] if lfs else None, entry["oid"])
        following = page.links.get("next", {}).get("url")
        url = following and str(page.url.join(following))


def _get(url: str) -> httpx2.Response:
    from huggingface_hub.utils._headers import build_hf_headers
    from huggingface_hub.utils._http import get_session, hf_raise_for_status

    response = get_session().get(url, headers=build_hf_headers(), timeout=LIST_LIMIT_S)
    hf_raise_for_status(response)
    return response


def _base_models(info: ModelInfo) -> list[str]:
    card = info.card_data
    named = card.get("base_model") if card else None
    return [named] if isinstance(named, str) else [str(one) for one in named or ()]
