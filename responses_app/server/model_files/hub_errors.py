"""Errors of the model hub as sentences that say what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.repository import cache, cached_names, endpoint, nearest_names
from responses_app.server.model_files.retries import wait_text
from responses_app.server.model_files.sizes import size_text

if TYPE_CHECKING:
    import httpx2

DEMOS = ("demo-chat", "demo-harmony")


@contextmanager
def explained(name: str, revision: str) -> Iterator[None]:
    """Raise CannotServe for errors of the hub, the network and the disk, in words about the model `name`."""
    import httpx2

    try:
        yield
    except (httpx2.HTTPError, OSError, ValueError, TypeError, AttributeError, KeyError, ImportError) as error:
        raise CannotServe(f"{name}: {problem(error, name, revision)}") from error


def problem(error: Exception, name: str, revision: str) -> str:
    """Return the sentence for an error of the hub's library, of httpx2, or of the disk."""
    import httpx2
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if isinstance(error, HFValidationError):
        return _no_name(error, name)
    if isinstance(error, OfflineModeIsEnabled):
        return f"HF_HUB_OFFLINE=1 forbids downloads, and the model is not complete in {cache()}. Unset it{_in_cache(name)}."
    if isinstance(error, GatedRepoError):
        return _gated(name)
    if isinstance(error, RevisionNotFoundError):
        return f"the model has no revision {revision!r}: see {endpoint()}/{name}/tree/main for its branches and tags."
    if isinstance(error, RepositoryNotFoundError):
        return _unknown(name)
    if isinstance(error, HfHubHTTPError):
        return _refused(error, error.response, name)
    if isinstance(error, httpx2.HTTPError):
        return unreachable(error, name)
    if isinstance(error, UnicodeError):
        return f"the token of {_token_place()} holds characters that no token has: copy it again from {endpoint()}/settings/tokens."
    if isinstance(error, ImportError) or "proxy" in str(error):
        reason = _first_line(error).rstrip(".")
        return f"the proxy cannot be used: {reason}. Set HTTPS_PROXY and ALL_PROXY to an http:// proxy, or unset them."
    return _disk(error) if isinstance(error, OSError) else _no_hub(error)


def unreachable(error: Exception, name: str) -> str:
    """Return the sentence for a hub without an answer."""
    fix = "Check the connection and the proxy (HTTPS_PROXY), set HF_ENDPOINT to a mirror, or give a folder: --model NAME=FOLDER"
    return f"{endpoint()} cannot be reached ({_first_line(error)}). {fix}{_in_cache(name)}."


def _no_hub(error: Exception) -> str:
    return (
        f"{endpoint()} does not answer as a model hub ({type(error).__name__}: {_first_line(error)}). A page of a proxy or of a "
        "network may answer in its place: check the connection, or set HF_ENDPOINT to the hub or a mirror."
    )


def _no_name(error: Exception, name: str) -> str:
    if ":" in name and "\\" not in name and (nearest := _nearest(name.replace(":", "-"))):
        return f"no name of a model on {endpoint()}, which is OWNER/NAME without a colon. Similar names: {', '.join(nearest)}."
    return f"no name of a model: {_first_line(error)} A name on the hub is OWNER/NAME; a folder begins with ./ or /."


def _unknown(name: str) -> str:
    nearest = [*([] if "/" in name else get_close_matches(name, DEMOS, n=1)), *_nearest(name)]
    similar = f" Similar names: {', '.join(nearest)}." if nearest else ""
    return f"{endpoint()} has no model of this name, or the model is private.{similar} {_token(f'may read {name}')}"


def _nearest(name: str) -> list[str]:
    import httpx2

    with suppress(httpx2.HTTPError, OSError, ValueError):
        return nearest_names(name)
    return []


def _gated(name: str) -> str:
    return f"the model is gated: accept its terms at {endpoint()}/{name}. {_token('belongs to the account that accepted them')}"


def _token(fact: str) -> str:
    """Say how to set a token, and which token was sent."""
    from huggingface_hub import get_token

    where = f"from {endpoint()}/settings/tokens"
    if get_token() is None:
        return f"No token was sent: set HF_TOKEN to a token that {fact}, {where}."
    return f"The token of {_token_place()} was sent: use one that {fact}, {where}."


def _token_place() -> str:
    from huggingface_hub import constants

    is_set = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN")
    return "HF_TOKEN" if is_set else str(constants.HF_TOKEN_PATH)


def _refused(error: Exception, response: httpx2.Response, name: str) -> str:
    host = urlsplit(str(response.url)).netloc
    if response.status_code == 401:
        return f"{host} refuses the token (401). {_token(f'is valid and may read {name}')}"
    if response.status_code == 403:
        reason = response.headers.get("X-Error-Message", "")
        return f"{host} forbids the download (403{': ' + reason if reason else ''}). {_token(f'may read {name}')}"
    if response.status_code == 429:
        return f"{host} limits the rate of requests (429). {_wait(error)}"
    if response.status_code >= 500:
        when = wait_text(error) or "some minutes"
        return f"{host} has a failure ({response.status_code}). Try again in {when}: what is downloaded is kept."
    path = urlsplit(str(response.url)).path
    return f"{host} answers {response.status_code} to {path}. Try again, or set HF_ENDPOINT to the hub or to another mirror."


def _wait(error: Exception) -> str:
    from huggingface_hub import get_token

    wait = f"Wait {wait_text(error) or 'some minutes'}"
    return f"{wait}." if get_token() else f"{wait}, or set HF_TOKEN, which has a higher limit."


def _disk(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"the disk of {cache()} is full: free space, or set HF_HOME to a folder on another disk. What is downloaded is kept."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
        return f"{error.filename or cache()} cannot be written to: set HF_HOME to a folder that you may write to."
    return _first_line(error)


def disk_too_small(needed: int, free: int) -> str:
    """Return the sentence for a disk without enough space for a download."""
    fix = "Free space, or set HF_HOME to a folder on another disk"
    return f"the download needs {size_text(needed)}, and {size_text(free)} are free at {cache()}. {fix}."


def _in_cache(name: str) -> str:
    names = get_close_matches(name, cached_names(), n=3, cutoff=0.0)
    return f". In the cache: {', '.join(names)}" if names else ""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
