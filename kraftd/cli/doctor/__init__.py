"""``kraftd doctor``: what is wrong with a node and its quorum, each with its remedy.

`findings` and the `judge_*` modules are pure: observations go in, findings come out. `*_probe` make the
observations; they take no lock and leave no file.
"""
