"""The papers' claims: docs/claims.toml, and the page docs/claims.md that is made of it (`manet report --claims`)."""
