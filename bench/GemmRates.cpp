//===- GemmRates.cpp - What tuning makes of a model's matrix products -----===//
//
// Every product of a decoder layer and of the head, forward and of both
// gradients: what the library's first choice sustains on this GPU, and what the
// fastest algorithm does.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "GemmChooser.h"
#include "GemmTimer.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;

namespace {

struct Arguments {
  uint64_t tokens = 4096, hidden = 4096, qkv = 6144, ffn = 14336;
  uint64_t vocabulary = 128256;
  double seconds = 1;
  bool wide = false;
};

/// y [tokens, n] = x [tokens, k] w [n, k]^T.
struct Linear {
  const char *name;
  uint64_t n, k;
};

struct Row {
  std::string name;
  double flops = 0;
  std::shared_ptr<const Gemm> gemm;
  bool head = false;
  Gemm::Choice first, best;
};

} // namespace

static ProductMatrix matrix(pb::DType type, uint64_t rows, uint64_t columns,
                            bool transposed = false) {
  return {type, rows, columns, columns, 256, transposed};
}

static Status addRows(Context &context, const Arguments &arguments,
                      const Linear &linear, bool head, std::vector<Row> &rows) {
  const uint64_t m = arguments.tokens, n = linear.n, k = linear.k;
  const pb::DType narrow = pb::BF16;
  const pb::DType gradient = arguments.wide ? pb::F32 : pb::BF16;
  // As much scratch as profiles of Hopper give a product.
  constexpr uint64_t scratch = uint64_t(32) << 20;
  const std::pair<const char *, ProductShape> products[] = {
      {"forward",
       {matrix(narrow, m, k), matrix(narrow, n, k, true), matrix(narrow, m, n),
        false, scratch}},
      {"dgrad",
       {matrix(narrow, m, n), matrix(narrow, n, k), matrix(narrow, m, k), false,
        scratch}},
      {"wgrad",
       {matrix(narrow, m, n, true), matrix(narrow, m, k),
        matrix(gradient, n, k), false, scratch}}};
  for (const auto &[kind, shape] : products) {
    Row row;
    row.name = std::string(linear.name) + " " + kind;
    row.flops = 2.0 * double(m) * double(n) * double(k);
    row.head = head;
    GTP_ASSIGN_OR_RETURN(row.gemm, Gemm::create(context, shape));
    row.first = row.best = row.gemm->candidates().front();
    rows.push_back(row);
  }
  return Status::ok();
}

static Status printRow(GemmTimer &timer, const Row &row, double seconds) {
  GTP_ASSIGN_OR_RETURN(double first,
                       timer.sustain({{row.gemm.get(), row.first}}, seconds));
  GTP_ASSIGN_OR_RETURN(double best,
                       timer.sustain({{row.gemm.get(), row.best}}, seconds));
  GTP_ASSIGN_OR_RETURN(ProductAlgorithm from,
                       Gemm::attributes(row.first.algorithm));
  GTP_ASSIGN_OR_RETURN(ProductAlgorithm to,
                       Gemm::attributes(row.best.algorithm));
  std::printf("%-16s %8.4f ms %4.0f TFLOP/s  %8.4f ms %4.0f TFLOP/s %+5.1f %%",
              row.name.c_str(), first / 1e6, row.flops / first / 1e3,
              best / 1e6, row.flops / best / 1e3, (first / best - 1) * 100);
  for (const ProductAlgorithm &algorithm : {from, to}) {
    std::printf(" ");
    for (uint32_t value : algorithm.values)
      std::printf(" %u", value);
  }
  std::printf("\n");
  std::fflush(stdout);
  return Status::ok();
}

/// All products of a layer in turn.
static Status printLayer(GemmTimer &timer, const std::vector<Row> &rows,
                         double seconds) {
  double flops = 0;
  std::vector<GemmTimer::Call> first, best;
  for (const Row &row : rows) {
    if (row.head)
      continue;
    flops += row.flops;
    first.push_back({row.gemm.get(), row.first});
    best.push_back({row.gemm.get(), row.best});
  }
  for (const auto &[name, calls] :
       {std::pair{"layer, first", &first}, {"layer, measured", &best}}) {
    GTP_ASSIGN_OR_RETURN(double ns, timer.sustain(*calls, seconds));
    std::printf("%-16s %8.4f ms %4.0f TFLOP/s\n", name, ns / 1e6,
                flops / ns / 1e3);
  }
  return Status::ok();
}

static Status run(const Arguments &arguments) {
  Context context;
  GTP_RETURN_IF_ERROR(context.create());
  const Linear layer[] = {
      {"qkv", arguments.qkv, arguments.hidden},
      {"o", arguments.hidden, arguments.hidden},
      {"gate+up", 2 * arguments.ffn, arguments.hidden},
      {"down", arguments.hidden, arguments.ffn},
  };
  std::vector<Row> rows;
  for (const Linear &linear : layer)
    GTP_RETURN_IF_ERROR(addRows(context, arguments, linear, false, rows));
  GTP_RETURN_IF_ERROR(addRows(context, arguments,
                              {"head", arguments.vocabulary, arguments.hidden},
                              true, rows));
  std::vector<const Gemm *> products;
  for (const Row &row : rows)
    products.push_back(row.gemm.get());
  GTP_ASSIGN_OR_RETURN(std::unique_ptr<GemmTimer> timer,
                       GemmTimer::create(products));
  GTP_ASSIGN_OR_RETURN(TuningPlatform platform, tuningPlatform(0));
  std::printf("%s, %s; %lu tokens, weight gradients in %s\n",
              platform.library.c_str(), platform.gpu.c_str(),
              static_cast<unsigned long>(arguments.tokens),
              arguments.wide ? "float32" : "bf16");
  for (Row &row : rows) {
    GTP_ASSIGN_OR_RETURN(GemmTimer::Fastest fastest, timer->fastest(*row.gemm));
    row.best = row.gemm->candidates()[fastest.candidate];
  }
  for (const Row &row : rows)
    GTP_RETURN_IF_ERROR(printRow(*timer, row, arguments.seconds));
  return printLayer(*timer, rows, 2 * arguments.seconds);
}

/// `main`, but for what is thrown.
static int runCommand(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Times the matrix products of a model on GPU 0.", "gemm-rates");
  app.add_option("--tokens", arguments.tokens, "of a microbatch");
  app.add_option("--hidden", arguments.hidden, "features");
  app.add_option("--qkv", arguments.qkv, "rows of the packed q, k and v");
  app.add_option("--ffn", arguments.ffn, "features between up and down");
  app.add_option("--vocabulary", arguments.vocabulary, "classes of the head");
  app.add_option("--seconds", arguments.seconds, "that a product is repeated");
  app.add_flag("--wide", arguments.wide, "weight gradients in float32");
  CLI11_PARSE(app, argc, argv);
  Status status = run(arguments);
  if (!status.isOk())
    std::fprintf(stderr, "gemm-rates: error: %s\n", status.message().c_str());
  return status.isOk() ? 0 : 1;
}

int main(int argc, char **argv) {
  try {
    return runCommand(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "gemm-rates: error: %s\n", error.what());
    return 1;
  }
}
