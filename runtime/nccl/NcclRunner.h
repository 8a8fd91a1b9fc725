//===- NcclRunner.h - Collectives through NCCL ----------------------------===//

#ifndef GTP_RUNTIME_NCCL_NCCLRUNNER_H
#define GTP_RUNTIME_NCCL_NCCLRUNNER_H

#include "CollectiveRunner.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gtp::rt::cuda {

/// Every rank's text, by rank; all ranks must call it.
using TextExchange =
    std::function<StatusOr<std::vector<std::string>>(const std::string &)>;

/// Communicators for all of the plan's that have more than one rank, on the
/// current device. Every rank of the job must call it. Fails for a transport
/// that is not there, and says which.
StatusOr<std::unique_ptr<CollectiveRunner>>
createNcclRunner(const plan::pb::Plan &plan, const Code &code, uint64_t rank,
                 const TextExchange &exchange);

/// Collectives that may run together and hold `wanted` multiprocessors of
/// `there` cannot wait for each other forever. Fails where these are fewer.
Status checkMultiprocessors(uint64_t wanted, int there);

/// "2.28.9": of the library that is loaded.
std::string ncclVersion();

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_NCCL_NCCLRUNNER_H
