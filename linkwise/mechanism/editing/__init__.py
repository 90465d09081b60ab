"""Changed copies of a mechanism, one kind of change in each file.

==============  ==========================================================================
``pieces``      a mechanism taken apart, by names, and put together again
``locking``     joints held still: their bodies become part of those that carry them
``attaching``   another mechanism, a payload or a frame fixed to this one
``removing``    a body and what hangs on it taken away
``mirroring``   the mechanism seen in a mirror, and its states
``renaming``    other names
==============  ==========================================================================
"""
