"""Before measuring: `plan` says what could be found, `calibrate` how much the machine varies by itself."""
