//===- TestPasses.cpp - Passes that only tests use ------------------------===//

#include "TestPasses.h"

void gtp::test::registerTestPasses() {
  registerTestCrash();
  registerTestGtpLayout();
  registerTestPlanEmit();
  registerTestTfmInterfaces();
  registerTestTfmStepGradients();
  registerTestTfmUnitGradients();
  registerTestTfmVjp();
}
