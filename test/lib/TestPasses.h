//===- TestPasses.h - Passes that only tests use --------------------------===//

#ifndef GTP_TEST_LIB_TESTPASSES_H
#define GTP_TEST_LIB_TESTPASSES_H

namespace gtp::test {

/// What gtp-opt calls when it is built with tests.
void registerTestPasses();

void registerTestCrash();
void registerTestGtpLayout();
void registerTestPlanEmit();
void registerTestTfmInterfaces();
void registerTestTfmStepGradients();
void registerTestTfmUnitGradients();
void registerTestTfmVjp();

} // namespace gtp::test

#endif // GTP_TEST_LIB_TESTPASSES_H
