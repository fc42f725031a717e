"""Programs that do what no answer should: name → text, and what they may be labelled.

Each is an answer to "write add(a, b)" and defines no `add`, so that none passes by itself. `{host}` is a folder of the
machine with a file `kept.txt`, `{port}` a port on which the machine listens.
"""

from __future__ import annotations

from typing import Final

HOSTILE: Final[dict[str, tuple[str, set[str]]]] = {
    "fork bomb": ("import os\nwhile True: os.fork()", {"failed", "killed"}),
    "fork bomb that goes on": (
        "import os, time\nwhile True:\n try: os.fork()\n except OSError: time.sleep(1)",
        {"timeout"},
    ),
    "thread bomb": (
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(600,)).start()",
        {"failed", "memory"},
    ),
    "connects to the network": ("import socket\nsocket.create_connection(('1.1.1.1', 80), 1)", {"failed"}),
    "connects to the machine": ("import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)", {"failed"}),
    "connects to the host of a virtual machine": (
        "import socket, time\nsocket.socket(40, socket.SOCK_STREAM)\ntime.sleep(600)",  # AF_VSOCK, in no namespace
        {"failed"},
    ),
    "asks for an address": ("import socket\nsocket.getaddrinfo('example.com', 80)", {"failed"}),
    "reads a file of the user": ("raise ValueError(open('{host}/kept.txt').read())", {"failed"}),
    "reads passwords": ("raise ValueError(open('/etc/shadow').read())", {"failed"}),
    "reads its environment": ("import os\nraise ValueError(os.environ.get('SERVICE_API_KEY'))", {"failed"}),
    "reads the environment of others": (
        "import glob\nfor name in glob.glob('/proc/[0-9]*/environ'):\n"
        " try: assert 'SERVICE_API_KEY' not in open(name).read(), 'kept-secret'\n"
        " except PermissionError: pass",
        {"failed"},
    ),
    "writes to the system": ("open('/usr/lib/hostile', 'w').write('x')", {"failed"}),
    "writes to the machine": ("open('{host}/kept.txt', 'w').write('x')", {"failed"}),
    "writes to the memory of devices": ("open('/dev/shm/hostile', 'w').write('x')", {"failed"}),
    "writes a huge file": ("with open('big', 'wb') as f:\n while True: f.write(bytes(1 << 20))", {"failed"}),
    "fills the disk": (
        "from itertools import count\nfor n in count():\n with open(str(n), 'wb') as f: f.write(bytes(1 << 23))",
        {"failed"},
    ),
    "takes 10 GB of memory": ("x = bytearray(10 ** 10)", {"memory"}),
    "takes memory bit by bit": ("x = []\nwhile True: x.append(bytearray(1 << 24))", {"memory"}),
    "takes memory as files": (
        "import os, time\nfor _ in range(99): os.write(os.memfd_create('x'), bytes(1 << 22))\ntime.sleep(600)",
        {"failed"},
    ),
    "takes memory that outlives it": (
        "import ctypes, time\nif ctypes.CDLL(None).shmget(0, 1 << 24, 0o1666) >= 0: time.sleep(600)",
        {"failed"},
    ),
    "prints forever": ("while True: print('x' * 1000)", {"output"}),
    "prints one character at a time": ("import os\nwhile True: os.write(1, b'x')", {"output", "timeout"}),
    "writes errors forever": ("import os\nwhile True: os.write(2, b'x' * 10000)", {"output"}),
    "loops forever": ("while True: pass", {"timeout"}),
    "sleeps": ("import time\ntime.sleep(600)", {"timeout"}),
    "ignores signals": (
        "import signal, time\nfor s in set(signal.Signals) - {{9, 19}}: signal.signal(s, signal.SIG_IGN)\n"
        "while True: time.sleep(600)",
        {"timeout"},
    ),
    "kills its parent": ("import os\nos.kill(os.getppid(), 9)", {"failed", "killed"}),
    "kills its group": ("import os\nos.killpg(0, 9)", {"killed"}),
    "kills everybody": ("import os\nos.kill(-1, 9)", {"failed", "killed"}),
    "traces its parent": (
        "import ctypes, os\nif ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0: import time; time.sleep(600)",
        {"failed"},
    ),
    "reads through a link": (
        "import os\nos.symlink('{host}/kept.txt', 'link')\nraise ValueError(open('link').read())",
        {"failed"},
    ),
    "makes its folder a link": (
        "import os, shutil\nos.chdir('/')\nshutil.rmtree(os.environ['HOME'], ignore_errors=True)\n"
        "os.symlink('{host}', os.environ['HOME'])",
        {"failed"},
    ),
    "deletes files": (
        "import os, shutil\nshutil.rmtree('{host}', ignore_errors=True)\nos.remove(os.__file__)",
        {"failed"},
    ),
    "nests folders": ("import os\nfor _ in range(3000):\n os.mkdir('d'); os.chdir('d')", {"failed"}),
    "leaves at once": ("import os\nos._exit(0)", {"failed"}),
    "leaves politely": ("import sys\nsys.exit(0)", {"failed"}),
    "says that all is well": (
        "import os\nprint('passed')\nfor n in range(3, 20):\n"
        " try: os.write(n, b'passed\\n')\n except OSError: pass\nos._exit(0)",
        {"failed"},
    ),
    "leaves at the end": ("import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit", {"failed"}),
    "recurses": ("def f(): f()\nf()", {"failed"}),
    "recurses without a limit": (
        "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(x): return [f(y) for y in (x,)]\nf(0)",
        {"killed", "memory", "timeout"},
    ),
    "is nested too deeply": ("x = " + "(" * 5000 + ")" * 5000, {"failed", "memory", "killed"}),
    "crashes": ("import ctypes\nctypes.string_at(0)", {"killed"}),
    "aborts": ("import os\nos.abort()", {"killed"}),
    "leaves a process behind": ("import subprocess\nsubprocess.Popen(['sleep', '600'])", {"failed"}),
    "leaves a daemon behind": (
        "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  os.closerange(0, 100)\n"
        "  time.sleep(600)\n os._exit(0)\nos.wait()",
        {"failed"},
    ),
    "has a huge message": ("raise ValueError('x' * 10 ** 8)", {"failed", "memory"}),
    "has a message that cannot be made": (
        "class E(Exception):\n def __str__(self): raise self\nraise E",
        {"failed"},
    ),
    "has a message of half characters": (r"raise ValueError('\ud800\0\x1b[31m')", {"failed"}),
    "prints what is no text": ("import os\nos.write(1, bytes(range(256)) * 100)", {"failed"}),
    "closes its output": ("import os, sys\nsys.stdout.close()\nos.close(2)", {"failed"}),
    "closes everything": ("import os\nos.closerange(0, 1000)", {"failed"}),
    "replaces what it is run by": (
        "import builtins, json, os, sys\n"
        "for m, names in ((builtins, ('exec', 'compile', 'vars', 'dict')), (json, ('dumps',)), (os, ('_exit',))):\n"
        " for name in names: setattr(m, name, lambda *a, **k: None)\n",
        {"failed"},
    ),
    "replaces AssertionError": (
        "import builtins\nbuiltins.AssertionError = type('Fine', (SystemExit,), {{}})\nassert False",
        {"failed"},
    ),
    "replaces imports": (
        "import sys\nclass Finder:\n def find_spec(self, *a): raise SystemExit(0)\n"
        "sys.meta_path.insert(0, Finder())\nsys.modules.clear()\nimport decimal",
        {"failed"},
    ),
    "holds a null character": ("x = 1\0", {"failed"}),
    "is not Python": ("Certainly! Here is the function:", {"failed"}),
    "becomes root": ("import os\nos.setuid(0)\nos.setgid(0)\nopen('/root/hostile', 'w')", {"failed"}),
    "mounts": (
        "import ctypes, time\nif not ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None): time.sleep(600)",
        {"failed"},
    ),
    "makes a user namespace": (
        "import ctypes, time\nif not ctypes.CDLL(None).unshare(0x10000000): time.sleep(600)",
        {"failed"},
    ),
    "raises its limits": (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)",
        {"failed"},
    ),
}
