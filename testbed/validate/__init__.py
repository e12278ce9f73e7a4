"""Validation of the medium in virtual time against a closed form, Bianchi's model and ns-2.35.

closed_form.py and bianchi.py use the standard and the constants of the radio profiles, not the medium's
code; ns2.py reruns ns-2 and reads its stored tables; simulate.py runs `manet-medium sim`; checks.py
compares; command.py is `manet validate`.
"""
