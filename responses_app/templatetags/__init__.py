"""What templates can say besides Django's own words."""
