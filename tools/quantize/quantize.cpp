#include "tools/quantize/quantize.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"
#include "tools/interrupt.h"
#include "tools/output_file.h"
#include "tools/quantize/file_type.h"
#include "tools/quantize/ordered_work.h"
#include "tools/quantize/plan.h"
#include "tools/quantize/summary.h"

namespace infer {
namespace {

constexpr int kMaxThreads = 256;    // a few MB each
constexpr int kMostThreads = 1024;  // that may be asked for

// A slice of a conversion. Tasks are in the order of writing.
struct Task {
  size_t conversion;
  int64_t start;
};

std::vector<Task> make_tasks(const QuantizePlan& plan) {
  std::vector<Task> tasks;
  for (const OutputFile& output : plan.outputs) {
    for (const size_t i : output.tensors) {
      const int64_t n = plan.conversions[i].tensor->n_elements();
      for (int64_t start = 0; start < n; start += kSliceValues) tasks.push_back({i, start});
    }
  }
  return tasks;
}

// Detects a shortage that is already certain; a disk that fills up later is noticed while writing.
void check_room(const QuantizePlan& plan) {
  const std::filesystem::path& path = plan.outputs.front().path;
  uint64_t needed = 0;
  for (size_t i = 0; i < plan.conversions.size(); ++i) needed += plan.output_bytes(i);
  std::error_code error;
  const auto space = std::filesystem::space(path.has_parent_path() ? path.parent_path() : ".", error);
  if (error || needed <= space.available) return;
  throw Error(ErrorCode::kIo, expected_found("quantize", printable_path(path), megabytes(needed) + " of free space",
                                             megabytes(space.available)));
}

std::unique_ptr<GgufWriter> open_output(const QuantizePlan& plan, const OutputFile& output) {
  std::vector<GgufWriter::TensorInfo> tensors;
  for (const size_t i : output.tensors) {
    const Conversion& c = plan.conversions[i];
    tensors.push_back({c.tensor->name, c.type, c.tensor->shape});
  }
  return std::make_unique<GgufWriter>(output.path, output.metadata, std::move(tensors), plan.input->alignment());
}

// Returns false if the user stopped it. No files are left behind then, nor after an error.
bool convert(const QuantizePlan& plan, int n_threads, bool measure, Summary& summary) {
  const InterruptGuard guard;  // before there is a file that an interrupt would leave behind
  // All files have temporary names until every one is complete; unfinished ones are removed on destruction.
  std::vector<std::unique_ptr<GgufWriter>> writers;
  for (const OutputFile& output : plan.outputs) writers.push_back(open_output(plan, output));

  const std::vector<Task> tasks = make_tasks(plan);
  const ModelParts parts(plan.input->parts());
  std::vector<size_t> output_of(plan.conversions.size());
  uint64_t total_bytes = 0, done_bytes = 0;
  for (size_t k = 0; k < plan.outputs.size(); ++k) {
    for (const size_t i : plan.outputs[k].tensors) {
      output_of[i] = k;
      total_bytes += plan.conversions[i].tensor->n_bytes;
    }
  }
  StatusLine progress;
  OrderedWork<Slice> work(n_threads, tasks.size(), [&](size_t task, Slice& slice) {
    convert_slice(parts, plan.conversions[tasks[task].conversion], tasks[task].start, measure, slice);
  });
  for (const Task& task : tasks) {
    const Slice& slice = *work.next();
    if (guard.interrupted()) return false;
    const Conversion& c = plan.conversions[task.conversion];
    writers[output_of[task.conversion]]->write(slice.bytes);
    summary.add_slice(c, slice);
    done_bytes += row_bytes(c.tensor->type, std::min(kSliceValues, c.tensor->n_elements() - task.start));
    show_progress(progress, c.tensor->name, done_bytes, total_bytes);
  }
  for (const auto& writer : writers) writer->finish();
  return true;
}

void print_notes(const QuantizePlan& plan) {
  const auto note = [](size_t n, const char* what) {
    if (n > 0) std::fprintf(stderr, "infer quantize: note: %zu of the tensors %s\n", n, what);
  };
  note(plan.n_fallbacks, "have rows that do not fit the intended type and get another one");
  note(plan.n_without_importance, "to be quantized are not in the importance matrix");
  note(plan.n_wanting_importance,
       "get types of two bits or less; an importance matrix (--imatrix) makes them much better");
}

// Sorts out the words of the command line: IN [OUT] TYPE [THREADS]. Without OUT the file gets the name that llama.cpp's
// program gives it, beside the input.
void arrange(QuantizeOptions& o) {
  const auto is_type = [](const std::string& word) { return find_file_type(word) != nullptr || is_copy(word); };
  const auto is_number = [](const std::string& word) {
    return !word.empty() && word.size() <= 4 && word.find_first_not_of("0123456789") == std::string::npos;
  };
  if (is_type(o.output) && o.count.empty() && (o.type.empty() || is_number(o.type))) {
    o.count = o.type;
    o.type = o.output;
    std::string name = is_copy(o.type) ? "COPY" : std::string(find_file_type(o.type)->name);
    o.output = (std::filesystem::path(o.input).parent_path() / concat("ggml-model-", name, ".gguf")).string();
  }
  if (o.output.empty() || o.type.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("[quantize] ", o.output.empty() ? "OUT and TYPE are" : "TYPE is",
                       " missing. Write infer quantize IN OUT TYPE, with TYPE one of ", file_type_names()));
  }
  if (o.count.empty()) return;
  const int threads = is_number(o.count) ? std::stoi(o.count) : 0;
  if (threads < 1 || threads > kMostThreads) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("quantize", "the word after TYPE",
                               concat("a number of threads from 1 to ", kMostThreads), printable(o.count, 100)));
  }
  if (o.threads == 0) o.threads = threads;
}

int run_quantize(const QuantizeOptions& options) {
  if (!options.dry_run) check_output_file(options.output, "as OUT");
  const std::unique_ptr<QuantizePlan> plan = plan_quantization(options);
  Summary summary;
  for (size_t i = 0; i < plan->conversions.size(); ++i) {
    summary.add_tensor(plan->conversions[i], plan->output_bytes(i));
  }
  print_notes(*plan);
  if (options.dry_run) {
    summary.print(std::cout, false);
    return 0;
  }
  check_room(*plan);
  const auto start = std::chrono::steady_clock::now();
  const int processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int n_threads = std::min(options.threads > 0 ? options.threads : processors, kMaxThreads);
  if (!convert(*plan, n_threads, options.report, summary)) {
    std::fprintf(stderr, "infer quantize: stopped, nothing was written\n");
    return kInterruptedCode;
  }
  summary.print(std::cout, options.report);
  char line[64];
  std::snprintf(line, sizeof(line), "%.1f s with %d threads\n",
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), n_threads);
  std::cout << line;
  for (const OutputFile& output : plan->outputs) std::cout << printable_path(output.path) << "\n";
  return 0;
}

}  // namespace

std::function<int()> define_quantize(CLI::App& app) {
  const auto o = std::make_shared<QuantizeOptions>();
  app.add_option("input", o->input, "Model file (any part of a split one)")->required()->type_name("IN");
  app.add_option("output", o->output, "File to write (default: ggml-model-TYPE.gguf beside the input)")
      ->type_name("OUT");
  std::vector<std::string> types;
  for (const FileTypeInfo& type : file_types()) types.emplace_back(type.name);
  types.emplace_back("COPY");
  app.add_option("type", o->type, concat(file_type_names(), ", which keeps the type of every tensor"))
      ->check(suggests(types))
      ->type_name("TYPE");
  app.add_option("count", o->count, "The same as --threads")->type_name("THREADS");
  app.add_option("--imatrix", o->importance, "Importance matrix: how much each column of the weights matters")
      ->check(not_empty())
      ->type_name("FILE");
  app.add_option("--tensor-type", o->tensor_types,
                 "Type of tensors with matching names: ffn_down=Q6_K (may be repeated; the first match wins)")
      ->take_all()
      ->type_name("REGEX=TYPE");
  app.add_flag("--pure", o->mix.pure, "Use TYPE for all tensors instead of a mix");
  app.add_option("--output-tensor-type", o->output_tensor_type, "Type of output.weight")
      ->check(not_empty())
      ->type_name("TYPE");
  app.add_option("--token-embedding-type", o->token_embedding_type, "Type of token_embd.weight")
      ->check(not_empty())
      ->type_name("TYPE");
  app.add_flag("--leave-output-tensor", o->mix.leave_output, "Keep output.weight unchanged");
  app.add_flag("--allow-requantize", o->allow_requantize, "Quantize tensors that are already quantized");
  auto* keep_split = app.add_flag("--keep-split", o->keep_split, "Write as many parts as the input has");
  app.add_option("--split-size", o->split_size, "Maximum size of a part: 500M, 2G")
      ->check(not_empty())
      ->excludes(keep_split)
      ->type_name("SIZE");
  app.add_flag("--dry-run", o->dry_run, "Print sizes and types, write nothing");
  app.add_flag("--report", o->report, "Measure the error and the speed of each type");
  app.add_option("-t,--threads", o->threads, "Threads (default: one per processor); does not change the file")
      ->check(whole_number(1, kMostThreads))
      ->type_name("N");
  return [o] {
    arrange(*o);
    return run_quantize(*o);
  };
}

}  // namespace infer
