"""The page at ``/``: rendered here, whole, so that it works without JavaScript; a script keeps it up to date."""
