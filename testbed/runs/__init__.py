"""One run of one scenario with one seed: isolation, its record, its end; and the prompt on a running network."""
