"""The names and files of the Pharia SDKs."""
