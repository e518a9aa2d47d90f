"""The command line: reads arguments, calls the rooms below, and says what went wrong in words and exit
codes.
"""
