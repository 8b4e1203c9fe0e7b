"""Settings of a Django project that has the app: refusals, and defaults for what the project does not set."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.conf import LazySettings, settings
from django.contrib.auth.models import Group
from django.test import override_settings

from project.pool import POOL, TIME_LIMITS
from responses_app import apps
from responses_app.apps import add_defaults, check_account_model, check_urls, settings_problem
from responses_app.installation.data_dir import TEMPLATE_DIR


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("DATABASES", {"default": {"ENGINE": "django.db.backends.sqlite3"}}, "must be django.db.backends.postgresql"),
        ("INSTALLED_APPS", ["responses_app"], "INSTALLED_APPS lacks django.contrib.admin"),
        ("MIDDLEWARE", [], "MIDDLEWARE lacks responses_app.web.delivery.csp.middleware"),
    ],
)
def test_setting_that_the_app_cannot_use_is_named(name: str, value: object, sentence: str) -> None:
    usable = {each: getattr(settings, each) for each in ("DATABASES", "INSTALLED_APPS", "MIDDLEWARE")}
    assert settings_problem(SimpleNamespace(**usable)) is None
    assert sentence in (settings_problem(SimpleNamespace(**{**usable, name: value})) or "")


def test_defaults_leave_what_the_project_has_set() -> None:
    project = LazySettings()
    project.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "OPTIONS": {"keepalives_idle": "60"}}},
        RESPONSES_MAX_QUEUED=7,
        STORAGES={"default": {"BACKEND": "mine"}},
        TEMPLATES=[{"DIRS": ["mine"]}],
    )
    add_defaults(project, vars(import_module("project.settings")))
    assert (project.RESPONSES_MAX_QUEUED, project.LOGIN_URL) == (7, "sign-in")
    assert sorted(project.STORAGES) == ["default", "files"]
    assert project.TEMPLATES == [{"DIRS": ["mine", TEMPLATE_DIR]}]
    assert project.DATABASES["default"]["OPTIONS"] == {**TIME_LIMITS, "keepalives_idle": "60", "pool": POOL}


def test_account_model_without_user_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_account_model() == []
    monkeypatch.setattr(apps, "get_user_model", lambda: Group)
    assert "which is no subclass of AbstractUser" in check_account_model()[0].msg


def test_project_without_the_urls_is_told_to_add_them() -> None:
    assert check_urls() == []
    with override_settings(ROOT_URLCONF="django.contrib.auth.urls"):
        assert check_urls()[0].hint == 'Add path("", include("project.urls")).'
