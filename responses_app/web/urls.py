"""Addresses for people."""

from __future__ import annotations

from django.urls import path

from responses_app.web import views

urlpatterns = [path("", views.home, name="home")]
