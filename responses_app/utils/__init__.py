"""Small helpers of several packages, as `django.utils`: log lines, durations, pauses, shares, imports, invisible characters."""
