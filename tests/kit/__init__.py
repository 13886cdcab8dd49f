"""A pure test kit for protocols: worlds without a clock or a network, brute-force oracles and exhaustive exploration."""
