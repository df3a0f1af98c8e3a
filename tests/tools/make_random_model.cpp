// make_random_model SHAPE TYPE OUT.gguf [LAYERS SCALE DRAFT.gguf | successor]: see src/model/random_model.h. LAYERS,
// SCALE and DRAFT.gguf also write a draft with that many layers, which agrees with the model more often the smaller
// SCALE is; `successor` writes a model that counts.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "src/model/random_model.h"

int main(int argc, char** argv) {
  const bool successor = argc == 5 && std::string_view(argv[4]) == "successor";
  if (argc != 4 && argc != 7 && !successor) {
    std::fprintf(stderr, "usage: make_random_model SHAPE TYPE OUT.gguf [LAYERS SCALE DRAFT.gguf | successor]\n");
    return 2;
  }
  try {
    if (successor) {
      infer::write_successor_model(argv[1], argv[2], argv[3]);
    } else if (argc == 4) {
      infer::write_random_model(argv[1], argv[2], argv[3]);
    } else {
      infer::write_random_pair(argv[1], argv[2], {std::atoi(argv[4]), std::strtof(argv[5], nullptr)}, argv[3], argv[6]);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_random_model: %s\n", error.what());
    return 1;
  }
  return 0;
}
