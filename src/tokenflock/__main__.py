"""`python -m tokenflock` is the command line."""

from tokenflock.cli import main

if __name__ == "__main__":
    main()
