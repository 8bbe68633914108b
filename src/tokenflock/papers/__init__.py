"""Papers as running code: one folder for each paper, one file for each figure or group of
statements.

A file of a paper (an item) has a docstring (a title, then how it is computed), the constant
`SOURCE` (where in the paper), `CAPTION` where there is a picture (one sentence: what to see), and

    compute(scale) -> xarray.Dataset or DataTree   the numbers; attrs["setting"] says the parameters
    draw(data)     -> Figure or {name: Figure}     the pictures (left out where nothing is to see)
    claims(data)   -> list of Claim                what the numbers say

Because the file exists it is listed, run, drawn, and judged: `tokenflock reproduce --list`.
"""
