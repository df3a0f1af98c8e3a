#include "tools/commands.h"

#include "tools/bench/bench.h"
#include "tools/bench_serve/bench_serve.h"
#include "tools/devices.h"
#include "tools/embed/embed.h"
#include "tools/grammar/grammar.h"
#include "tools/imatrix/imatrix.h"
#include "tools/inspect.h"
#include "tools/logprobs.h"
#include "tools/perplexity/perplexity.h"
#include "tools/plan/plan.h"
#include "tools/quantize/quantize.h"
#include "tools/run.h"
#include "tools/serve/serve.h"
#include "tools/template.h"
#include "tools/tokenize.h"

namespace infer {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"run", "Chat, or continue a prompt (the default command)", define_run},
      {"serve", "Run an OpenAI-compatible server", define_serve},
      {"tokenize", "Print the token ids of a text", define_tokenize},
      {"logprobs", "Print the most probable next tokens after every token of a text", define_logprobs},
      {"embed", "Turn texts into vectors, or score them against a query", define_embed},
      {"template", "Render a conversation with a chat template", define_template},
      {"grammar", "Check a grammar or a JSON schema, and texts against it", define_grammar},
      {"imatrix", "Measure which columns of the weights matter, for quantize --imatrix", define_imatrix},
      {"perplexity", "Measure how well a model predicts a text, or how far it is from another", define_perplexity},
      {"bench", "Measure speed, as a fraction of this machine's limits", define_bench},
      {"bench-serve", "Measure a server under concurrent load", define_bench_serve},
      {"plan", "Show the memory a model would need on this machine", define_plan},
      {"quantize", "Convert a model to fewer bits per weight", define_quantize},
      {"inspect", "Show the contents of a model file", define_inspect},
      {"devices", "List the devices that can run models", define_devices},
  };
  return all;
}

}  // namespace infer
