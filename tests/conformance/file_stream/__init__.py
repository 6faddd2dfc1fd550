"""Classes file and stream of 0-8 and transitional 0-10, whose documents say the same of them."""
