"""URL configuration of the provider for tests."""

from __future__ import annotations

from django.urls import include, path

from tests.support.oidc import program

urlpatterns = [
    path("login", program.log_in),
    path("control", program.control),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]
