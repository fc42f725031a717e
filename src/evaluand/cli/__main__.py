"""`python -m evaluand.cli`: the command line without its script."""

from evaluand.cli import main

if __name__ == "__main__":
    main(prog_name="evaluand")
