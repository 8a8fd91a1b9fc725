//===- gtp-opt.cpp - The compiler -----------------------------------------===//

#include "gtp/Tools/GtpOpt.h"

#ifdef GTP_INCLUDE_TESTS
namespace gtp::test {
void registerTestPasses();
} // namespace gtp::test
#endif

int main(int argc, char **argv) {
#ifdef GTP_INCLUDE_TESTS
  gtp::test::registerTestPasses();
#endif
  return gtp::gtpOptMain(argc, argv);
}
