"""The programs of traffic kinds that run inside stations. Standard library only: they start without site-packages."""
