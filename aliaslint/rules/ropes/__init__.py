"""The value flow behind AL301, AL302 and AL304: which arrays reach RoPE, with which offset.

A small interpretation of its own, over `ast`: shapes are tuples of texts, functions have
summaries. It knows nothing of aliases, and the alias analysis knows nothing of shapes.
"""
