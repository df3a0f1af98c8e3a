// Repositories of Hugging Face: the list of files with sizes and hashes, and the addresses of files.
#pragma once

#include <string>
#include <vector>

#include "src/hub/fetch.h"
#include "src/hub/model_name.h"
#include "src/hub/proxy.h"
#include "src/hub/variants.h"

namespace infer {

struct HuggingFaceOptions {
  std::string endpoint = "https://huggingface.co";
  std::string token;  // "": none
};

// $HF_ENDPOINT; the token of $HF_TOKEN, or of the file that huggingface-cli login writes.
HuggingFaceOptions hugging_face_options(const Environment& environment = process_environment);

// Throws Error(kInvalidArgument) for a token that cannot be sent in a header.
void check_token(const std::string& token);

// All GGUF files of the repository. Throws what fetch_document() throws, and Error(kInvalidFile) for a list that is not
// what the API promises or names files outside the repository.
std::vector<RemoteFile> list_hugging_face(HttpClient& client, const ModelName& name, const HuggingFaceOptions& options,
                                          const FetchOptions& fetch, const HubEvents& events);

// The target of the entry rel="next" in a Link header; "" if there is none.
std::string next_page(std::string_view link_header);

}  // namespace infer
