"""`python -m runner._cli`: the command where its script is not on the PATH."""

from runner._cli import main

if __name__ == "__main__":
    main()
