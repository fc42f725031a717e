"""A sandbox for Python programs that nobody has read, such as those that models write.

What a program is kept from, in bubblewrap (Linux), or in a container of docker or podman:

    the network                 it has none
    files                       it sees the system and the Python environment, or those of the image, read-only, and no
                                home; it can write to one empty folder in memory, its HOME, which is gone when it ends
    secrets                     its environment says nothing of yours; it sees no process but its own
    more than its share         time, memory, processes, sizes of files and of the output have limits (`Limits`)
    staying                     all its processes end with it, also those that have left their group, and when the
                                process that started it is killed

What it is not kept from: using its share, in bubblewrap with each of its processes; asking the kernel, which it has in
common with everything else; and claiming that it has come to its end. The proof of that is a token which no variable
holds while a program is executed; but it is in the memory of its process, so a program written to look for it there
finds it.

Without a sandbox a program is refused, unless the caller allows it to run without isolation. It then runs in an empty
folder with limits, in a separate process group, and as another user if root starts it. But it sees what that user may
see, also on the network; it may stop other processes of that user; and a process that leaves the group outlives it.

    sandbox/places.py      where a program runs: in bubblewrap, or in a folder without isolation
    sandbox/containers.py  or in a container
    sandbox/calls.py       the calls of the kernel that are refused there
    sandbox/limits.py      what it may use
    sandbox/running.py     runs it, ends all that it has started, and says how it ended
    sandbox/inside.py      what executes it there
"""
