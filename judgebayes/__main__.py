"""`python -m judgebayes`."""

from judgebayes.cli import main

main()
