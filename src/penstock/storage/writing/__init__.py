"""Writing a folder whole or not at all, for packs and exports alike: what is interrupted goes on where it stopped.

preconditions ─► work (tasks, `parallel`) ─► preparing: sample → row ─► writer: outputs in order ─► journal
                                                                                                      │
                                            places: the staging folder takes its name ◄───────────────┘
"""
