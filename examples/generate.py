"""Text from a GGUF model: generate.py MODEL.gguf [PROMPT]. Ctrl-C ends it."""
import sys

import relax

if len(sys.argv) < 2:
    sys.exit(__doc__)
model = relax.llm.load(sys.argv[1], context=1024, cache=True, progress=True)
prompt = " ".join(sys.argv[2:])
answer = (model.chat([{"role": "user", "content": prompt}], max_tokens=256) if prompt and model.weights.meta(
    "tokenizer.chat_template") else model.generate(prompt or "Once upon a time", max_tokens=64))
try:
    for piece in answer:
        print(piece, end="", flush=True)
except KeyboardInterrupt:
    pass
s = answer.stats
print(f"\n{s.prompt_tokens} + {s.tokens} tokens, {s.tokens / max(s.seconds, 1e-9):.1f} tokens/s, {s.finish}",
      file=sys.stderr)
