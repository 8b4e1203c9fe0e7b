"""Addresses for people."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from responses_app.web import sign_in, views

urlpatterns = [
    path("", views.home, name="home"),
    path("sign-in", sign_in.with_account, name="sign-in"),
    path("sign-in/<str:token>", sign_in.with_link, name="sign-in-link"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
    path("", include("responses_app.web.chat_urls")),
]
