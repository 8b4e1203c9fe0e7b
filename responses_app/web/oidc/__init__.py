"""Sign-in by OpenID Connect with django-allauth. A Django app, so that django-allauth finds the provider."""
