"""Notes: markdown documents at semantic paths, their revisions, proposals and review."""
