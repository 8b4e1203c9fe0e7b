"""Package indexes and certificates for uv: the ones that the settings of uv or of pip name."""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# With one of these set, uv needs no options, and the settings of pip do not count.
UV_SETTINGS = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE")
SECTIONS = ("global", "install")


@dataclass(frozen=True, slots=True)
class PackageIndexes:
    """Package indexes: `default` in the place of PyPI, `extra` beside the default, `find_links` folders or pages of wheels."""

    default: str = ""
    extra: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()

    def options(self) -> list[str]:
        """Build uv's options. Several indexes are compared by version, as pip does.

        The hashes of the lock protect an installation of the server against another's package of the same name. The packages for
        code have versions and no hashes.
        """
        options = [f"--default-index={self.default}"] if self.default else []
        options += [f"--index={url}" for url in self.extra]
        options += [f"--find-links={place}" for place in self.find_links]
        return [*options, "--index-strategy=unsafe-best-match"] if self.extra else options


def configured_indexes(environ: Mapping[str, str] = os.environ) -> PackageIndexes:
    """Read the package indexes from the settings of pip; return none if uv has separate settings."""
    if any(environ.get(name) for name in UV_SETTINGS) or any(file.exists() for file in _uv_files(environ)):
        return PackageIndexes()
    default, extra, find_links = (_pip_setting(name, environ) for name in ("index-url", "extra-index-url", "find-links"))
    return PackageIndexes(default[-1] if default else "", extra, find_links)


def certificates(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Name the file of certificates that pip is told to trust, as a variable for uv; empty if uv is told, or pip is not."""
    file = " ".join(_pip_setting("cert", environ))
    return {"SSL_CERT_FILE": file} if file and not environ.get("SSL_CERT_FILE") else {}


def _pip_setting(name: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Read the values of pip's setting `name`: the environment wins over the files, a later file over an earlier file."""
    variable = environ.get("PIP_" + name.upper().replace("-", "_"))
    if variable is not None:
        return tuple(variable.split())
    values: tuple[str, ...] = ()
    for file in _pip_files(environ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(file)
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in SECTIONS:
            values = tuple(parser.get(section, name, fallback=" ".join(values)).split())
    return values


def _uv_files(environ: Mapping[str, str]) -> Iterator[Path]:
    yield Path("/etc/uv/uv.toml")
    yield _config_folder(environ) / "uv" / "uv.toml"


def _config_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or "/nonexistent") / ".config")


def _pip_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """List pip's configuration files in pip's order: machine, user, and PIP_CONFIG_FILE."""
    for folder in reversed((environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")):
        yield Path(folder) / "pip" / "pip.conf"
    yield Path("/etc/pip.conf")
    yield Path(environ.get("HOME") or "/nonexistent") / ".pip" / "pip.conf"
    yield _config_folder(environ) / "pip" / "pip.conf"
    if named := environ.get("PIP_CONFIG_FILE"):
        yield Path(named)
