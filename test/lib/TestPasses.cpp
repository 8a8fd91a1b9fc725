//===- TestPasses.cpp - Passes that only tests use ------------------------===//

namespace gtp::test {

/// What gtp-opt calls when it is built with tests.
void registerTestPasses();
void registerTestPasses() {}

} // namespace gtp::test
