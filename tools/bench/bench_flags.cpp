#include <memory>

#include "tools/arguments.h"
#include "tools/bench/bench.h"

namespace infer {

std::function<int()> define_bench(CLI::App& app) {
  const auto o = std::make_shared<BenchOptions>();
  add_model_flags(app, o->model, false);
  add_shape_flags(app, o->shape, "Use a well-known shape with random weights instead of a file");
  const auto list = [&](const char* name, std::vector<int>& values, const char* text, int least, int most) {
    app.add_option(name, values, text)
        ->delimiter(',')
        ->take_all()
        ->check(whole_number(least, most))
        ->type_name("N,...");
  };
  app.add_option("-f,--file", o->text_file, "File with text to cut the prompts from (default: random tokens)")
      ->check(not_empty())
      ->type_name("FILE");
  list("-p,--prompt", o->prompts, "Prompt lengths to measure (default: 512); 0: none", 0, 1 << 20);
  list("-n,--predict", o->generations, "Tokens to generate (default: 128); 0: none", 0, 1 << 20);
  list("-b,--batch", o->batches, "Concurrent sequences (default: 1)", 1, 512);
  app.add_option("-d,--depth", o->depth, "Tokens in the context before generation begins (default: 1)")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N");
  add_speculation_flags(app, o->speculation);
  app.add_flag("--ops", o->operations, "Print the time per operation and shape, with fractions of the limits");
  app.add_option("-r,--repetitions", o->repetitions, "Rounds; the median is reported (default: 3)")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  app.add_flag("--json", o->json, "Print one JSON document");
  return [o] { return run_bench(*o); };
}

}  // namespace infer
