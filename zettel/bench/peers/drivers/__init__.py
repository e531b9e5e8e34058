"""One driver per peer, in the form that ``zettel.bench.peers.serve`` describes. Each is loaded as a single file."""
