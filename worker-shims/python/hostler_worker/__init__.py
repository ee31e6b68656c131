"""The worker's private side. Tool authors use the module ``hostler``; nothing here is theirs.

Every import here is paid at each start of each worker, so what a first error, a first typed
argument or a first async call needs is imported then, and not before.
"""
