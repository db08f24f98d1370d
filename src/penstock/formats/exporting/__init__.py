"""A Source becomes files that other programs read: the verb `export`.

options ──► runs: samples by split, in order ──► preparation in workers, `rendering` at its end
                                                          │ rows in order
          export.yaml ◄── finish: tables ◄── journal ◄── pieces: what a format writes before it is noted as done
"""
