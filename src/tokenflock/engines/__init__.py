"""How the one equation is run: arrays in, arrays out."""
