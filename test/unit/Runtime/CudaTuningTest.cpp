//===- CudaTuningTest.cpp - Measured products, and what pins them ---------===//

#include "BackendUnderTest.h"
#include "HostPlan.h"
#include "gtp-rt/CudaBackend.h"
#include "gtp-rt/TuningCache.h"

#include "gtp/Support/BFloat16.h"

using namespace gtp;
using namespace gtp::test;

namespace {

class CudaTuning : public TestOnBackend {};

/// A linear of bf16 operands on CUDA with that cache; its result, or the error.
StatusOr<std::vector<float>>
tunedLinear(std::shared_ptr<rt::TuningCache> cache) {
  HostPlan plan;
  uint32_t x = plan.buffer(2 * 256 * 512, pb::Buffer::PERSISTENT);
  uint32_t w = plan.buffer(2 * 384 * 512, pb::Buffer::PERSISTENT);
  uint32_t y = plan.buffer(4 * 256 * 384);
  plan.kernel(plan.region(pb::Region::ONCE), 0, "linear",
              {operand(x, pb::BF16, {256, 512}),
               operand(w, pb::BF16, {384, 512}),
               operand(y, pb::F32, {256, 384})});
  rt::BackendOptions options;
  options.tuningCache = std::move(cache);
  GTP_ASSIGN_OR_RETURN(std::unique_ptr<rt::Backend> backend,
                       rt::createCudaBackend(plan.plan, options, {}));
  std::vector<BFloat16> values(384 * 512);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = BFloat16(float(i % 97) / 97 - 0.5f);
  write(*backend, 0, w, values);
  values.resize(256 * 512);
  write(*backend, 0, x, values);
  GTP_RETURN_IF_ERROR(backend->runStep(0, nullptr));
  return read<float>(*backend, 0, y, 256 * 384);
}

TEST_F(CudaTuning, MeasuredProductsStay) {
  auto cache = std::make_shared<rt::TuningCache>();
  auto measured = tunedLinear(cache);
  ASSERT_TRUE(measured.isOk()) << measured.message();
  EXPECT_EQ(cache->size(), 1u);
  const std::string text = cache->text();
  // What is known is not measured again, and gives the same bits.
  auto known = tunedLinear(cache);
  ASSERT_TRUE(known.isOk()) << known.message();
  EXPECT_EQ(cache->text(), text);
  EXPECT_EQ(*known, *measured);
  auto untuned = tunedLinear(nullptr);
  ASSERT_TRUE(untuned.isOk()) << untuned.message();
  for (size_t i = 0; i < untuned->size(); ++i)
    ASSERT_NEAR((*untuned)[i], (*measured)[i], 1e-3) << i;

  // An algorithm that the library does not have.
  std::string bad = text;
  size_t at = bad.find("\"id\":");
  ASSERT_NE(at, std::string::npos) << bad;
  bad.insert(at + 5, "12345");
  auto wrong = rt::TuningCache::parse(bad);
  ASSERT_TRUE(wrong.isOk()) << wrong.message();
  EXPECT_NE(tunedLinear(std::make_shared<rt::TuningCache>(std::move(*wrong)))
                .message()
                .find("the tuning cache's algorithm for the product "
                      "bf16:256x512:512:256 bf16:384x512:512:256:T "
                      "f32:256x384:384:256 is none that cuBLASLt takes: "),
            std::string::npos);
}

} // namespace
