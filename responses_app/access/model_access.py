"""Models that an API key may use: lists, checks and error messages."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone

from responses_app.access.permissions import projects
from responses_app.errors import Forbidden, InvalidRequest
from responses_app.models import ApiKey, Project
from responses_app.runs import manager
from responses_app.runs.models import ServedModel, resolve_alias
from responses_app.validation.errors import shorten

# Limits of the model names in an error message.
MAX_NAMES_SHOWN = 20
MAX_NAME_CHARACTERS = 80


def can_use(key: ApiKey, model: str) -> bool:
    """Return True if the key and its project may use the model of this name."""
    return key.refusal("allowed_models", model) is None


def usable(key: ApiKey) -> dict[str, ServedModel]:
    """Return the models that the key may use, by name and by alias."""
    now = manager.current()
    names = dict(now.served)
    # Patterns are left out: a client cannot choose a pattern from a list.
    names |= {alias: now.served[model] for alias, model in now.aliases.items() if "*" not in alias}
    return {name: one for name, one in names.items() if can_use(key, one.name)}


def usable_by_person(user: AbstractBaseUser | AnonymousUser) -> list[str]:
    """Return the models that a person may use with a key of theirs, in a project without such a key with a new one.

    Without an account or a project these are all models.
    """
    served = list(manager.current().served)
    if not user.is_authenticated:
        return served
    names = projects(user)
    if not names:
        return served
    limits = {project.name: project for project in Project.objects.filter(name__in=names)}
    now = timezone.now()
    mine = ApiKey.objects.filter(owner__pk=user.pk, project__in=names, revoked_at=None).exclude(expires_at__lte=now)
    keys = list(mine)
    keys += [ApiKey(project=name) for name in {*names} - {key.project for key in keys}]
    for key in keys:
        key.project_limits = limits.get(key.project)
    return [name for name in served if any(can_use(key, name) for key in keys)]


def find(name: str) -> ServedModel | None:
    """Return the model with a name or alias, or None."""
    now = manager.current()
    return resolve_alias(name, now.served, now.aliases)


def check_model(key: ApiKey, name: str) -> None:
    """Check that the model exists and that the key may use the model. Raises InvalidRequest, Forbidden."""
    served = find(name)
    if served is None:
        message = f"The requested model '{shorten(name)}' does not exist. {available(key)}"
        raise InvalidRequest(message, param="model", code="model_not_found")
    subject = key.refusal("allowed_models", served.name)
    if subject is not None:
        message = f"{subject} may not use the model '{shorten(name)}'. {available(key)}"
        raise Forbidden(message, param="model", code="model_not_found")


def available(key: ApiKey) -> str:
    """Return a sentence with the names of the models that the key may use."""
    names = list(usable(key))
    if not names:
        return "This key may use none of the models of this server."
    more = len(names) - MAX_NAMES_SHOWN
    ellipsis = f" and {more} more, which GET /v1/models lists" if more > 0 else ""
    return f"Available models: {_quoted(names[:MAX_NAMES_SHOWN])}{ellipsis}."


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name if len(name) <= MAX_NAME_CHARACTERS else name[:MAX_NAME_CHARACTERS] + '…'}'" for name in names)
