"""The documentation site: the repository's Markdown files as pages, and pages generated from parsers, schemas
and measured rows."""
