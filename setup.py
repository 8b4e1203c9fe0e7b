"""Build of the wheel: the server, its settings, and the top-level folders that are mapped into the package."""

from __future__ import annotations

from setuptools import find_packages, setup

# responses_app.installation.data_dir finds these folders in a checkout and in an installed package.
MAPPED = {"responses_app.templates": "templates", "responses_app.examples": "docs/examples"}
DATA = ("css", "html", "jinja", "js", "json", "safetensors", "svg", "txt", "zdict")

setup(
    packages=[*find_packages(include=["responses_app", "responses_app.*", "project", "project.*"]), *MAPPED],
    package_dir=MAPPED,
    package_data={name: [f"**/*.{suffix}" for suffix in DATA] for name in ("responses_app", *MAPPED)},
)
