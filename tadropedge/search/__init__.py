"""Search: a declared space of hyper-parameters, Optuna studies that survive a kill, the two protocols."""
