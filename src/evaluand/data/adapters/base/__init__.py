"""What an adapter is, and what kinds of adapters have in common."""
