"""Root URL configuration."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import include, path

from responses_app.web.accounts import sign_in

handler403 = "responses_app.web.error_pages.permission_denied"
handler404 = "responses_app.web.error_pages.page_not_found"
handler500 = "responses_app.web.error_pages.server_error"

urlpatterns = [
    # Off without a provider: then no path leads to django-allauth.
    *([path("sign-in/oidc/", include("responses_app.web.oidc.urls"))] if settings.RESPONSES_OIDC.issuer else []),
    path("", include("responses_app.mcp_server.views")),
    path("", include("responses_app.api.urls")),
    path("", include("responses_app.web.urls")),
    path("admin/login/", sign_in.to_admin),
    path("admin/", admin.site.urls),
]
