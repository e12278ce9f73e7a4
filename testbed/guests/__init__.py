"""Guests: this machine's files under another kernel, in QEMU. `manet vm` is their command; how it works is in README.md."""
