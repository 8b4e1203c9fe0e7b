"""Django projects of another name, made by `django-admin startproject`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings

from responses_app.apps import settings_problem
from responses_app.installation.data_dir import ROOT

OURS = "from project.settings import *\nROOT_URLCONF = 'mysite.urls'\nINSTALLED_APPS = [*INSTALLED_APPS, 'polls']\n"
URLS = "from django.urls import include, path\nurlpatterns = [path('', include('project.urls'))]\n"


def test_project_of_another_name_passes_the_checks_and_a_bare_one_is_refused(tmp_path: Path) -> None:
    django = [sys.executable, "-m", "django"]
    subprocess.run([*django, "startproject", "mysite", str(tmp_path)], check=True, timeout=60)
    (tmp_path / "polls").mkdir()
    bare = (tmp_path / "mysite/settings.py").read_text() + "INSTALLED_APPS += ['responses_app']\n"
    (tmp_path / "mysite/urls.py").write_text(URLS)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "RESPONSES_DATA_DIR": str(tmp_path / "data")}
    environ["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
    outputs = []
    for text in (bare, OURS):
        (tmp_path / "mysite/settings.py").write_text(text)
        command = [sys.executable, "-B", "manage.py", "check"]
        answer = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=120)
        outputs.append(answer.stdout + answer.stderr)
    assert "begin the settings with `from project.settings import *`" in outputs[0].splitlines()[-1]
    assert "no issues" in outputs[1]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("DATABASES", {"default": {"ENGINE": "django.db.backends.sqlite3"}}, "must be django.db.backends.postgresql"),
        ("AUTH_USER_MODEL", "people.Person", "AUTH_USER_MODEL must be auth.User, not 'people.Person'"),
        ("INSTALLED_APPS", ["responses_app"], "INSTALLED_APPS lacks django.contrib.admin"),
    ],
)
def test_setting_that_the_app_cannot_use_is_named(name: str, value: object, sentence: str) -> None:
    names = ("RESPONSES_MODELS", "DATABASES", "AUTH_USER_MODEL", "INSTALLED_APPS")
    usable = {each: getattr(settings, each) for each in names}
    assert settings_problem(SimpleNamespace(**usable)) is None
    assert sentence in (settings_problem(SimpleNamespace(**{**usable, name: value})) or "")
