"""URL configuration of the sign-in by OpenID Connect."""

from __future__ import annotations

from django.urls import path

from responses_app.web.oidc import views

urlpatterns = [
    path("start", views.begin, name="oidc-start"),
    path("callback", views.callback, name="oidc-callback"),
]
