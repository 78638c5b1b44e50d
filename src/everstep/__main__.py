"""`python -m everstep`: the command line."""

from everstep.doors.cli.main import main

if __name__ == "__main__":
    main()
