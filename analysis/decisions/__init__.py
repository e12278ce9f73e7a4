"""Answers to an experiment's questions: which pairs are compared, and when they decide (docs/campaigns.md)."""
