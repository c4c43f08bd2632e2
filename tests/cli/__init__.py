"""The command, by what it prints and the status it ends with."""
