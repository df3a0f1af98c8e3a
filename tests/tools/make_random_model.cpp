// make_random_model SHAPE TYPE OUT.gguf: see src/model/random_model.h.
#include <cstdio>
#include <exception>

#include "src/model/random_model.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: make_random_model SHAPE TYPE OUT.gguf\n");
    return 2;
  }
  try {
    infer::write_random_model(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_random_model: %s\n", error.what());
    return 1;
  }
  return 0;
}
