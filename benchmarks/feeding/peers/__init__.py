"""One contestant a file. Each runs in an environment of its own and knows only its peer, `protocol` and `decoding`."""
