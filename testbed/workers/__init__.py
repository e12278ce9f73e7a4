"""The worker of a campaign: one batch on this machine (docs/campaigns.md)."""
