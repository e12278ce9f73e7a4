"""Where stations are over time: trace files, written before a run and never during one."""
