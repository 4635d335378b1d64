from rlflow.cli import main

main()
