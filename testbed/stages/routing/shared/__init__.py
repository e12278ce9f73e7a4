"""What several protocols of this folder use."""
