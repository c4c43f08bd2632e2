"""A small bank, written as a user of the library would from the README alone, and swept."""
