"""The contracts of the id graph as black-box checks over HTTP: they know a deployment's address and a key, no more."""
