"""Common parts of several protocols of this folder."""
