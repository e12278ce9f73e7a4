"""The work that this machine carries out: an experiment (`manet run`), a batch of a campaign (docs/campaigns.md)."""
